(** How far the rows of one unit move a measure: the bounds of [query.sensitivity.stability].

    A measure is a vector over [cells] cells. Two tables are [apart] as in Relations: they differ in at most [k] rows
    of one unit on either side. Where the first has no row of the unit, that is add_remove; else replace_one. *)

From Coq Require Import List ZArith Lia Permutation Bool Arith.
From Lapwing Require Import Tables Relations.
Import ListNotations.
Open Scope Z_scope.

(** * Vectors *)

Fixpoint sum_to (n : nat) (f : nat -> Z) : Z := match n with O => 0 | S n => sum_to n f + f n end.

Definition l1 (cells : nat) (d : nat -> Z) : Z := sum_to cells (fun c => Z.abs (d c)).
Definition l2_squared (cells : nat) (d : nat -> Z) : Z := sum_to cells (fun c => d c * d c).

Lemma square_le a w : - w <= a <= w -> a * a <= w * w.
Proof. nia. Qed.

Lemma between_squares a b x : 0 <= a -> 0 <= b -> - a <= x <= b -> x * x <= a * a + b * b.
Proof. intros A B H. pose proof (Z.square_nonneg a). pose proof (Z.square_nonneg b). destruct (Z.le_gt_cases 0 x); nia. Qed.

Lemma sum_to_le n f g : (forall c, (c < n)%nat -> f c <= g c) -> sum_to n f <= sum_to n g.
Proof. induction n as [|n IH]; simpl; intros H; [lia|]. pose proof (H n). specialize (IH (fun c L => H c (Nat.lt_lt_succ_r _ _ L))). lia. Qed.

Lemma sum_to_ext n f g : (forall c, (c < n)%nat -> f c = g c) -> sum_to n f = sum_to n g.
Proof. intros H. apply Z.le_antisymm; apply sum_to_le; intros c L; rewrite (H c L); lia. Qed.

Lemma sum_to_add n f g : sum_to n (fun c => f c + g c) = sum_to n f + sum_to n g.
Proof. induction n; simpl; lia. Qed.

Lemma sum_to_scale n k f : sum_to n (fun c => k * f c) = k * sum_to n f.
Proof. induction n; simpl; lia. Qed.

Lemma sum_to_const n k : sum_to n (fun _ => k) = Z.of_nat n * k.
Proof. induction n; simpl sum_to; lia. Qed.

Lemma sum_to_swap n m (f : nat -> nat -> Z) :
  sum_to n (fun c => sum_to m (fun i => f c i)) = sum_to m (fun i => sum_to n (fun c => f c i)).
Proof.
  induction n; simpl.
  - rewrite sum_to_const. lia.
  - rewrite IHn, <- sum_to_add. auto.
Qed.

Lemma l1_nonnegative n d : 0 <= l1 n d.
Proof. unfold l1. induction n; simpl; lia. Qed.

Lemma l1_ext n d e : (forall c, (c < n)%nat -> d c = e c) -> l1 n d = l1 n e.
Proof. intros H. apply sum_to_ext. intros c L. rewrite (H c L). auto. Qed.

Lemma l2_ext n d e : (forall c, (c < n)%nat -> d c = e c) -> l2_squared n d = l2_squared n e.
Proof. intros H. apply sum_to_ext. intros c L. rewrite (H c L). auto. Qed.

(** The L2 norm is at most the L1 norm. *)
Lemma l2_by_l1 n d : l2_squared n d <= l1 n d * l1 n d.
Proof.
  unfold l2_squared. induction n as [|n IH]; simpl; [reflexivity|].
  pose proof (l1_nonnegative n d). unfold l1 in *. simpl. set (s := sum_to n _) in *.
  pose proof (Z.abs_nonneg (d n)). pose proof (Z.abs_square (d n)). nia.
Qed.

Lemma l1_triangle n d e : l1 n (fun c => d c - e c) <= l1 n d + l1 n e.
Proof. unfold l1. rewrite <- sum_to_add. apply sum_to_le. intros. lia. Qed.

(** * Sums over rows *)

Definition cell_function := values -> option nat. (* None: a row that is in no cell *)

Definition point (o : option nat) (v : Z) (c : nat) : Z :=
  match o with Some n => if (n =? c)%nat then v else 0 | None => 0 end.

(** A SUM by cell; of values 1, a COUNT. *)
Fixpoint sums (cell : cell_function) (value : values -> Z) (t : table) (c : nat) : Z :=
  match t with [] => 0 | r :: t => point (cell (snd r)) (value (snd r)) c + sums cell value t c end.

Lemma sums_app cell value t t' c : sums cell value (t ++ t') c = sums cell value t c + sums cell value t' c.
Proof. induction t; simpl; lia. Qed.

Lemma sums_permutation cell value t t' c : Permutation t t' -> sums cell value t c = sums cell value t' c.
Proof. induction 1; simpl; lia. Qed.

Lemma sums_of_neighbours cell value u t t' c :
  Permutation (others u t) (others u t') ->
  sums cell value t' c - sums cell value t c = sums cell value (own u t') c - sums cell value (own u t) c.
Proof.
  intros P. rewrite (sums_permutation _ _ _ _ _ (split_by_unit u t)), (sums_permutation _ _ _ _ _ (split_by_unit u t')).
  rewrite !sums_app, (sums_permutation _ _ _ _ _ P). lia.
Qed.

Lemma point_sum o v n : 0 <= v -> sum_to n (point o v) <= v.
Proof.
  intros H. unfold point. destruct o as [m|]; [|rewrite sum_to_const; lia].
  assert (A : forall n, sum_to n (fun c => if (m =? c)%nat then v else 0) = if (m <? n)%nat then v else 0).
  { induction n0 as [|k IH]; simpl; auto. rewrite IH.
    destruct (Nat.ltb_spec m k), (Nat.eqb_spec m k), (Nat.ltb_spec m (S k)); lia. }
  rewrite A. destruct (m <? n)%nat; lia.
Qed.

Lemma point_map (f : Z -> Z) o v c : f 0 = 0 -> f (point o v c) = point o (f v) c.
Proof. unfold point. destruct o as [m|]; auto. destruct (m =? c)%nat; auto. Qed.

Section Rows.
  Variables (cell : cell_function) (value : values -> Z) (low high : Z).
  Hypothesis bounds : forall v, low <= value v <= high.
  Hypothesis around_zero : low <= 0 <= high.
  Let m := Z.max (- low) high.

  Lemma l1_of_rows cells t : l1 cells (sums cell value t) <= Z.of_nat (length t) * m.
  Proof.
    unfold l1. induction t as [|r t IH].
    - simpl. rewrite sum_to_const. lia.
    - cbn [sums length].
      transitivity (sum_to cells (fun c => point (cell (snd r)) (Z.abs (value (snd r))) c + Z.abs (sums cell value t c))).
      + apply sum_to_le. intros c _. rewrite <- (point_map Z.abs) by reflexivity. lia.
      + rewrite sum_to_add. pose proof (point_sum (cell (snd r)) (Z.abs (value (snd r))) cells (Z.abs_nonneg _)).
        specialize (bounds (snd r)). unfold m in *. nia.
  Qed.

  Lemma between t c : Z.of_nat (length t) * low <= sums cell value t c <= Z.of_nat (length t) * high.
  Proof.
    induction t as [|r t IH]; cbn [sums length]; [simpl; lia|]. specialize (bounds (snd r)).
    unfold point. destruct (cell (snd r)) as [n|]; [destruct (n =? c)%nat|]; nia.
  Qed.

  Definition nth_part (t : table) (i c : nat) : Z :=
    match nth_error t i with Some r => point (cell (snd r)) (value (snd r)) c | None => 0 end.

  Lemma sums_by_parts t c k : (length t <= k)%nat -> sums cell value t c = sum_to k (fun i => nth_part t i c).
  Proof.
    assert (S : forall f n, sum_to (S n) f = f 0%nat + sum_to n (fun i => f (S i))).
    { intros f n. induction n as [|n IH]; [simpl; lia|]. change (sum_to (S (S n)) f) with (sum_to (S n) f + f (S n)).
      rewrite IH. simpl. lia. }
    revert k. induction t as [|r t IH]; intros k L.
    - simpl. unfold nth_part. rewrite (sum_to_ext _ _ (fun _ => 0)); [rewrite sum_to_const; lia|].
      intros i _. destruct i; auto.
    - destruct k as [|k]; simpl in L; [lia|]. rewrite S. cbn [sums]. rewrite (IH k) by lia. reflexivity.
  Qed.

  Lemma cauchy k (z : nat -> Z) : sum_to k z * sum_to k z <= Z.of_nat k * sum_to k (fun i => z i * z i).
  Proof.
    induction k as [|k IH]; [simpl; lia|]. destruct k as [|k']; [cbn [sum_to]; change (Z.of_nat 1) with 1; lia|]. remember (S k') as k eqn:K.
    rewrite Nat2Z.inj_succ. cbn [sum_to].
    set (s := sum_to k z) in *. set (q := sum_to k (fun i => z i * z i)) in *. set (x := z k). set (n := Z.of_nat k) in *.
    assert (0 < n) by lia.
    assert (Q : 0 <= (n * x - s) * (n * x - s)) by apply Z.square_nonneg.
    assert (D : 2 * x * s <= n * (x * x) + q); [|lia].
    apply (Z.mul_le_mono_pos_l _ _ n); lia.
  Qed.

  Lemma difference_of_points o o' v v' cells :
    low <= v <= high -> low <= v' <= high ->
    l2_squared cells (fun c => point o' v' c - point o v c) <= Z.max ((high - low) * (high - low)) (2 * (m * m)).
  Proof.
    intros H H'. unfold l2_squared.
    assert (D : o = o' \/ forall c, point o' v' c * point o v c = 0).
    { unfold point. destruct o as [n|], o' as [n'|]; auto; try (right; intros; lia).
      destruct (Nat.eq_dec n n') as [->|N]; auto. right. intros c.
      destruct (Nat.eqb_spec n c), (Nat.eqb_spec n' c); subst; try lia. }
    destruct D as [->|D].
    - rewrite (sum_to_ext _ _ (point o' ((v' - v) * (v' - v)))).
      + etransitivity; [apply point_sum, Z.square_nonneg|]. pose proof (square_le (v' - v) (high - low)). lia.
      + intros c _. unfold point. destruct o' as [n|]; auto. destruct (n =? c)%nat; lia.
    - rewrite (sum_to_ext _ _ (fun c => point o' (v' * v') c + point o (v * v) c)).
      + rewrite sum_to_add. pose proof (point_sum o' (v' * v') cells (Z.square_nonneg _)).
        pose proof (point_sum o (v * v) cells (Z.square_nonneg _)).
        pose proof (square_le v m). pose proof (square_le v' m). unfold m in *. lia.
      + intros c _. rewrite <- (point_map (fun x => x * x) o'), <- (point_map (fun x => x * x) o) by reflexivity.
        specialize (D c). nia.
  Qed.

  Lemma l2_of_differences cells k t t' :
    (length t <= k)%nat -> (length t' <= k)%nat ->
    l2_squared cells (fun c => sums cell value t' c - sums cell value t c)
    <= (Z.of_nat k * Z.of_nat k) * Z.max ((high - low) * (high - low)) (2 * (m * m)).
  Proof.
    intros L L'. set (M := Z.max _ _).
    set (z := fun c i => nth_part t' i c - nth_part t i c).
    rewrite (l2_ext _ _ (fun c => sum_to k (z c))).
    - transitivity (sum_to cells (fun c => Z.of_nat k * sum_to k (fun i => z c i * z c i))).
      + apply sum_to_le. intros c _. apply cauchy.
      + rewrite sum_to_scale, sum_to_swap, <- Z.mul_assoc. apply Z.mul_le_mono_nonneg_l; [lia|].
        rewrite <- sum_to_const. apply sum_to_le. intros i _. unfold z, nth_part.
        assert (N : forall o v, low <= v <= high ->
          sum_to cells (fun c => (0 - point o v c) * (0 - point o v c)) <= M /\
          sum_to cells (fun c => (point o v c - 0) * (point o v c - 0)) <= M).
        { intros o v H. split.
          - apply (difference_of_points o None v 0 cells); lia.
          - apply (difference_of_points None o 0 v cells); lia. }
        destruct (nth_error t' i) as [r'|], (nth_error t i) as [r|].
        * apply difference_of_points; auto.
        * apply N; auto.
        * apply N; auto.
        * rewrite (sum_to_ext _ _ (fun _ => 0)) by auto. rewrite sum_to_const. unfold M. nia.
    - intros c _. rewrite (sums_by_parts t' c k), (sums_by_parts t c k) by auto. unfold z.
      rewrite (sum_to_ext _ (fun i => nth_part t' i c - nth_part t i c) (fun i => nth_part t' i c + (-1) * nth_part t i c))
        by (intros; lia).
      rewrite sum_to_add, sum_to_scale. lia.
  Qed.

  Variables (cells k : nat) (u : Z) (t t' : table).
  Hypothesis neighbours : apart u k t t'.
  Let moved c := sums cell value t' c - sums cell value t c.

  Lemma moved_by_unit c : moved c = sums cell value (own u t') c - sums cell value (own u t) c.
  Proof. apply sums_of_neighbours. apply neighbours. Qed.

  Theorem rows_added :
    own u t = [] -> l1 cells moved <= Z.of_nat k * m /\ l2_squared cells moved <= (Z.of_nat k * m) * (Z.of_nat k * m).
  Proof.
    intros E. destruct neighbours as (_ & _ & L).
    assert (A : l1 cells moved <= Z.of_nat k * m).
    { rewrite (l1_ext _ _ (sums cell value (own u t'))).
      - etransitivity; [apply l1_of_rows|]. unfold m. nia.
      - intros c _. rewrite moved_by_unit, E. simpl. lia. }
    split; auto. etransitivity; [apply l2_by_l1|]. pose proof (l1_nonnegative cells moved). nia.
  Qed.

  Theorem rows_replaced :
    l1 cells moved <= 2 * (Z.of_nat k * m) /\
    l2_squared cells moved
    <= (Z.of_nat k * Z.of_nat k) * Z.max ((high - low) * (high - low)) (2 * (m * m)).
  Proof.
    destruct neighbours as (_ & L & L'). split.
    - rewrite (l1_ext _ _ _ (fun c _ => moved_by_unit c)). etransitivity; [apply l1_triangle|].
      pose proof (l1_of_rows cells (own u t)). pose proof (l1_of_rows cells (own u t')). unfold m in *. nia.
    - rewrite (l2_ext _ _ _ (fun c _ => moved_by_unit c)). apply l2_of_differences; auto.
  Qed.

  Theorem rows_replaced_in_one_cell : forall c, Z.abs (moved c) <= Z.of_nat k * (high - low).
  Proof.
    intros c. destruct neighbours as (_ & L & L'). rewrite moved_by_unit.
    pose proof (between (own u t) c). pose proof (between (own u t') c). nia.
  Qed.
End Rows.

(** * Units: what each of them adds to a cell is counted once, or clamped *)

Definition in_cell (cell : cell_function) (c : nat) (t : table) : table :=
  filter (fun r => match cell (snd r) with Some n => (n =? c)%nat | None => false end) t.

(** What a unit adds to a cell: nothing if it has no row there. *)
Definition part (g : table -> Z) (cell : cell_function) (t : table) (c : nat) (u : Z) : Z :=
  match own u (in_cell cell c t) with [] => 0 | l => g l end.

Fixpoint over_units (f : Z -> Z) (us : list Z) : Z := match us with [] => 0 | u :: us => f u + over_units f us end.

Definition unit_sums (g : table -> Z) (cell : cell_function) (t : table) (c : nat) : Z :=
  over_units (part g cell t c) (units t).

(** COUNT(DISTINCT unit) by cell. *)
Definition unit_counts (cell : cell_function) : table -> nat -> Z := unit_sums (fun _ => 1) cell.

Definition clamp (low high x : Z) : Z := Z.max low (Z.min high x).

(** A SUM of which each unit's part in a cell is clamped. *)
Definition clamped_sums (low high : Z) (value : values -> Z) (cell : cell_function) : table -> nat -> Z :=
  unit_sums (fun l => clamp low high (sums (fun _ => Some 0%nat) value l 0)) cell.

(** In how many cells a unit has rows. *)
Definition reached (cell : cell_function) (cells : nat) (t : table) (u : Z) : Z :=
  sum_to cells (fun c => part (fun _ => 1) cell t c u).

Lemma own_in_cell cell c u t : own u (in_cell cell c t) = in_cell cell c (own u t).
Proof.
  unfold own, in_cell. rewrite !filter_filter. apply filter_ext. intros r. apply andb_comm.
Qed.

Lemma part_permutation g cell c v t t' :
  (forall l l', Permutation l l' -> g l = g l') -> Permutation (own v t) (own v t') -> part g cell t c v = part g cell t' c v.
Proof.
  intros G P. unfold part. rewrite !own_in_cell.
  assert (Q : Permutation (in_cell cell c (own v t)) (in_cell cell c (own v t'))) by (apply filter_permutation; auto).
  destruct (in_cell cell c (own v t)) as [|r l], (in_cell cell c (own v t')) as [|r' l']; auto.
  - apply Permutation_nil in Q. discriminate.
  - apply Permutation_sym, Permutation_nil in Q. discriminate.
Qed.

Lemma over_units_permutation f l l' : Permutation l l' -> over_units f l = over_units f l'.
Proof. induction 1; simpl; lia. Qed.

Lemma over_units_ext f g l : (forall u, In u l -> f u = g u) -> over_units f l = over_units g l.
Proof. induction l as [|u l IH]; simpl; intros H; auto. rewrite (H u), IH; auto. Qed.

Lemma over_units_but u f l :
  NoDup l -> f u = 0 \/ In u l -> over_units f l = over_units f (filter (fun v => negb (v =? u)) l) + f u.
Proof.
  induction l as [|v l IH]; simpl; intros D H; [destruct H; [lia|tauto]|]. inversion D as [|? ? N D']; subst.
  destruct (Z.eqb_spec v u) as [E|E]; simpl.
  - subst. rewrite filter_all; [lia|]. intros w I. destruct (Z.eqb_spec w u); auto. subst. tauto.
  - rewrite IH; auto; [lia|]. destruct H as [|[|]]; auto. congruence.
Qed.

Lemma units_but u t t' :
  Permutation (others u t) (others u t') ->
  Permutation (filter (fun v => negb (v =? u)) (units t)) (filter (fun v => negb (v =? u)) (units t')).
Proof.
  intros P.
  assert (A : forall s v, In v (filter (fun v => negb (v =? u)) (units s)) <-> exists x, In (v, x) (others u s)).
  { intros s v. rewrite filter_In, in_units. unfold others. split.
    - intros ((x & I) & N). exists x. apply filter_In. auto.
    - intros (x & I). apply filter_In in I as (I & N). eauto. }
  apply NoDup_Permutation; try (apply NoDup_filter, NoDup_nodup). intros v. rewrite !A.
  split; intros (x & I); exists x; [apply (Permutation_in _ P)|apply (Permutation_in _ (Permutation_sym P))]; auto.
Qed.

Lemma unit_sums_of_neighbours g cell u t t' c :
  (forall l l', Permutation l l' -> g l = g l') -> Permutation (others u t) (others u t') ->
  unit_sums g cell t' c - unit_sums g cell t c = part g cell t' c u - part g cell t c u.
Proof.
  intros G P. unfold unit_sums.
  assert (Z : forall s, part g cell s c u = 0 \/ In u (units s)).
  { intros s. destruct (in_dec Z.eq_dec u (units s)); auto. left. unfold part. rewrite own_in_cell, own_empty; auto. }
  rewrite (over_units_but u (part g cell t c) (units t)), (over_units_but u (part g cell t' c) (units t'))
    by (auto; apply NoDup_nodup).
  rewrite (over_units_permutation _ _ _ (units_but u t t' P)).
  rewrite (over_units_ext (part g cell t c) (part g cell t' c)); [lia|].
  intros v I. apply filter_In in I as (_ & N). apply negb_true_iff, Z.eqb_neq in N.
  apply part_permutation; auto. rewrite <- (own_others u v t), <- (own_others u v t') by auto. apply own_permutation. auto.
Qed.

Lemma reached_by_rows cell cells t u : reached cell cells t u <= Z.of_nat (length (own u t)).
Proof.
  unfold reached.
  assert (A : forall l : table, sum_to cells (fun c => match in_cell cell c l with [] => 0 | _ => 1 end) <= Z.of_nat (length l)).
  { induction l as [|r l IH].
    - simpl. rewrite sum_to_const. lia.
    - transitivity (sum_to cells (fun c => point (cell (snd r)) 1 c + match in_cell cell c l with [] => 0 | _ => 1 end)).
      + apply sum_to_le. intros c _. unfold in_cell, point. simpl.
        destruct (cell (snd r)) as [n|]; [destruct (n =? c)%nat|]; try lia. destruct (filter _ l); lia.
      + rewrite sum_to_add. pose proof (point_sum (cell (snd r)) 1 cells). cbn [length]. lia. }
  rewrite (sum_to_ext _ _ (fun c => match in_cell cell c (own u t) with [] => 0 | _ => 1 end)); [apply A|].
  intros c _. unfold part. rewrite own_in_cell. auto.
Qed.

Lemma reached_by_cells cell cells t u : reached cell cells t u <= Z.of_nat cells.
Proof.
  unfold reached. rewrite <- (Z.mul_1_r (Z.of_nat cells)), <- sum_to_const. apply sum_to_le.
  intros c _. unfold part. destruct (own u (in_cell cell c t)); lia.
Qed.

Section Units.
  Variables (g : table -> Z) (low high : Z).
  Hypothesis bag : forall l l', Permutation l l' -> g l = g l'.
  Hypothesis bounds : forall l, low <= g l <= high.
  Let least := Z.min low 0.
  Let greatest := Z.max high 0.
  Let most := Z.max (- least) greatest.
  Let width := greatest - least.

  Variables (cell : cell_function) (cells k : nat) (groups : Z) (u : Z) (t t' : table).
  Hypothesis neighbours : apart u k t t'.
  Hypothesis at_most : reached cell cells t u <= groups.
  Hypothesis at_most' : reached cell cells t' u <= groups.
  Let moved c := unit_sums g cell t' c - unit_sums g cell t c.

  Lemma parts_bounded s c :
    let n := part (fun _ => 1) cell s c u in
    (n = 0 \/ n = 1) /\ Z.abs (part g cell s c u) <= n * most /\ least <= part g cell s c u <= greatest.
  Proof.
    intros n. unfold n, part. destruct (own u (in_cell cell c s)) as [|r l]; cbv iota beta;
      unfold most, least, greatest; [lia|].
    specialize (bounds (r :: l)). lia.
  Qed.

  Lemma units_moved c : moved c = part g cell t' c u - part g cell t c u.
  Proof. apply unit_sums_of_neighbours; auto. apply neighbours. Qed.

  Theorem units_added :
    own u t = [] -> l1 cells moved <= groups * most /\ l2_squared cells moved <= groups * (most * most).
  Proof.
    intros E.
    assert (P : forall c, part g cell t c u = 0) by (intros c; unfold part; rewrite own_in_cell, E; auto).
    assert (M : 0 <= most) by (unfold most, least, greatest; lia).
    assert (A : forall q, 0 <= q -> sum_to cells (fun c => part (fun _ => 1) cell t' c u * q) <= groups * q).
    { intros q Q. rewrite (sum_to_ext _ _ (fun c => q * part (fun _ => 1) cell t' c u)) by (intros; lia).
      rewrite sum_to_scale. unfold reached in *. nia. }
    split.
    - etransitivity; [|apply (A most M)]. apply sum_to_le. intros c _. rewrite units_moved, P.
      destruct (parts_bounded t' c) as (_ & B & _). rewrite Z.sub_0_r. auto.
    - etransitivity; [|apply (A (most * most)); nia]. apply sum_to_le. intros c _. rewrite units_moved, P.
      destruct (parts_bounded t' c) as ([N|N] & B & _); rewrite N in *; nia.
  Qed.

  Theorem units_replaced :
    l1 cells moved <= 2 * (groups * most) /\
    l2_squared cells moved <= groups * Z.max (width * width) (2 * (most * most)).
  Proof.
    assert (M : 0 <= most) by (unfold most, least, greatest; lia).
    set (n := fun c => part (fun _ => 1) cell t c u). set (n' := fun c => part (fun _ => 1) cell t' c u).
    assert (A : forall q, 0 <= q -> sum_to cells (fun c => (n c + n' c) * q) <= 2 * groups * q).
    { intros q Q. rewrite (sum_to_ext _ _ (fun c => q * (n c + n' c))) by (intros; lia).
      rewrite sum_to_scale, sum_to_add. unfold reached in *. fold n in at_most. fold n' in at_most'. nia. }
    split.
    - rewrite Z.mul_assoc. etransitivity; [|apply (A most M)]. apply sum_to_le. intros c _. rewrite units_moved.
      destruct (parts_bounded t c) as (_ & B & _). destruct (parts_bounded t' c) as (_ & B' & _). unfold n, n'. lia.
    - set (m := Z.max (width * width) (2 * (most * most))).
      assert (H : 2 * l2_squared cells moved <= 2 * groups * m); [|lia].
      unfold l2_squared. rewrite <- sum_to_scale. etransitivity; [|apply (A m); unfold m; nia].
      apply sum_to_le. intros c _. rewrite units_moved.
      destruct (parts_bounded t c) as (N & B & C). destruct (parts_bounded t' c) as (N' & B' & C').
      fold (n c) in N, B. fold (n' c) in N', B'. set (x := part g cell t c u) in *. set (y := part g cell t' c u) in *.
      assert (W : - width <= y - x <= width) by (unfold width; lia).
      assert (Q : (y - x) * (y - x) <= width * width) by nia.
      destruct N as [N|N], N' as [N'|N']; rewrite N, N' in *; unfold m; nia.
  Qed.

  Theorem units_replaced_in_one_cell : forall c, Z.abs (moved c) <= width.
  Proof.
    intros c. rewrite units_moved.
    destruct (parts_bounded t c) as (_ & _ & A). destruct (parts_bounded t' c) as (_ & _ & B). unfold width. lia.
  Qed.
End Units.

(** COUNT(DISTINCT unit): one unit for another. *)
Theorem unit_counts_replaced : forall cell cells k groups u t t',
  apart u k t t' -> reached cell cells t u <= groups -> reached cell cells t' u <= groups ->
  let moved c := unit_counts cell t' c - unit_counts cell t c in
  l1 cells moved <= Z.min (2 * groups) (Z.of_nat cells) /\ l2_squared cells moved <= Z.min (2 * groups) (Z.of_nat cells).
Proof.
  intros cell cells k groups u t t' (P & _) A A' moved.
  assert (M : forall c, moved c = part (fun _ => 1) cell t' c u - part (fun _ => 1) cell t c u)
    by (intros; apply unit_sums_of_neighbours; auto).
  assert (N : forall s c, part (fun _ => 1) cell s c u = 0 \/ part (fun _ => 1) cell s c u = 1)
    by (intros s c; unfold part; destruct (own u (in_cell cell c s)); auto).
  assert (B : forall f : Z -> Z, f 0 = 0 -> f 1 = 1 -> f (-1) = 1 ->
    sum_to cells (fun c => f (moved c)) <= Z.min (2 * groups) (Z.of_nat cells)).
  { intros f F0 F1 F2. apply Z.min_glb.
    - transitivity (sum_to cells (fun c => part (fun _ => 1) cell t c u + part (fun _ => 1) cell t' c u)).
      + apply sum_to_le. intros c _. rewrite M. destruct (N t c) as [->| ->], (N t' c) as [->| ->]; simpl; lia.
      + rewrite sum_to_add. unfold reached in *. lia.
    - rewrite <- (Z.mul_1_r (Z.of_nat cells)), <- sum_to_const. apply sum_to_le. intros c _. rewrite M.
      destruct (N t c) as [->| ->], (N t' c) as [->| ->]; simpl; lia. }
  split; [apply (B Z.abs)|apply (B (fun x => x * x))]; reflexivity.
Qed.

(** * Distinct values: nobody's sum, and yet moved no further than rows are *)

Definition distinct_counts (value : values -> values) (cell : cell_function) (t : table) (c : nat) : Z :=
  Z.of_nat (length (nodup values_eq_dec (map (fun r => value (snd r)) (in_cell cell c t)))).

Definition row_counts (cell : cell_function) (t : table) (c : nat) : Z := Z.of_nat (length (in_cell cell c t)).

Lemma row_counts_are_sums cell t c : row_counts cell t c = sums cell (fun _ => 1) t c.
Proof.
  unfold row_counts, in_cell. induction t as [|r t IH]; auto. cbn [sums filter]. rewrite <- IH. unfold point.
  destruct (cell (snd r)) as [n|]; [destruct (n =? c)%nat|]; cbn [length]; lia.
Qed.

Lemma more_values (l l' : list values) :
  (length (nodup values_eq_dec l) <= length (nodup values_eq_dec (l' ++ l)) <= length l' + length (nodup values_eq_dec l))%nat.
Proof.
  induction l' as [|v l' IH]; [simpl; lia|]. cbn [app length nodup]. destruct (in_dec values_eq_dec v (l' ++ l)); cbn [length]; lia.
Qed.

Section DistinctValues.
  Variables (value : values -> values) (cell : cell_function) (cells k : nat) (u : Z) (t t' : table).
  Hypothesis neighbours : apart u k t t'.
  Let moved c := distinct_counts value cell t' c - distinct_counts value cell t c.

  Lemma distinct_between s c :
    distinct_counts value cell (others u s) c <= distinct_counts value cell s c
    <= row_counts cell (own u s) c + distinct_counts value cell (others u s) c.
  Proof.
    unfold distinct_counts, row_counts.
    assert (P : Permutation (map (fun r => value (snd r)) (in_cell cell c s))
      (map (fun r => value (snd r)) (in_cell cell c (own u s)) ++ map (fun r => value (snd r)) (in_cell cell c (others u s)))).
    { rewrite <- map_app. unfold in_cell. rewrite <- filter_app. apply Permutation_map, filter_permutation.
      rewrite Permutation_app_comm. apply split_by_unit. }
    rewrite (Permutation_length (nodup_permutation values_eq_dec _ _ P)).
    pose proof (more_values (map (fun r => value (snd r)) (in_cell cell c (others u s)))
      (map (fun r => value (snd r)) (in_cell cell c (own u s)))) as H. rewrite map_length in H. lia.
  Qed.

  Lemma distinct_moved c :
    - row_counts cell (own u t) c <= moved c <= row_counts cell (own u t') c.
  Proof.
    unfold moved. destruct neighbours as (P & _). pose proof (distinct_between t c). pose proof (distinct_between t' c).
    assert (E : distinct_counts value cell (others u t) c = distinct_counts value cell (others u t') c).
    { unfold distinct_counts. f_equal.
      apply Permutation_length, nodup_permutation, Permutation_map, filter_permutation. auto. }
    lia.
  Qed.

  Lemma row_counts_at_most s : l1 cells (row_counts cell s) <= Z.of_nat (length s).
  Proof.
    rewrite (l1_ext _ _ (sums cell (fun _ => 1) s)) by (intros; apply row_counts_are_sums).
    pose proof (l1_of_rows cell (fun _ => 1) 0 1 ltac:(lia) ltac:(lia) cells s). lia.
  Qed.

  Theorem distinct_added :
    own u t = [] -> l1 cells moved <= Z.of_nat k /\ l2_squared cells moved <= Z.of_nat k * Z.of_nat k.
  Proof.
    intros E. destruct neighbours as (_ & _ & L).
    assert (A : l1 cells moved <= Z.of_nat k).
    { transitivity (l1 cells (row_counts cell (own u t'))).
      - apply sum_to_le. intros c _. pose proof (distinct_moved c) as H. rewrite E in H. unfold row_counts in *. simpl in H. lia.
      - pose proof (row_counts_at_most (own u t')). lia. }
    split; auto. etransitivity; [apply l2_by_l1|]. pose proof (l1_nonnegative cells moved). nia.
  Qed.

  Theorem distinct_replaced :
    l1 cells moved <= 2 * Z.of_nat k /\ l2_squared cells moved <= 2 * (Z.of_nat k * Z.of_nat k).
  Proof.
    destruct neighbours as (_ & L & L').
    pose proof (row_counts_at_most (own u t)) as A. pose proof (row_counts_at_most (own u t')) as A'. split.
    - transitivity (l1 cells (row_counts cell (own u t)) + l1 cells (row_counts cell (own u t'))); [|lia].
      unfold l1. rewrite <- sum_to_add. apply sum_to_le. intros c _. pose proof (distinct_moved c). lia.
    - transitivity (l2_squared cells (row_counts cell (own u t)) + l2_squared cells (row_counts cell (own u t'))).
      + unfold l2_squared. rewrite <- sum_to_add. apply sum_to_le. intros c _. pose proof (distinct_moved c).
        apply between_squares; auto; unfold row_counts; lia.
      + pose proof (l2_by_l1 cells (row_counts cell (own u t))). pose proof (l2_by_l1 cells (row_counts cell (own u t'))).
        pose proof (l1_nonnegative cells (row_counts cell (own u t))).
        pose proof (l1_nonnegative cells (row_counts cell (own u t'))).
        pose proof (square_le (l1 cells (row_counts cell (own u t))) (Z.of_nat k)).
        pose proof (square_le (l1 cells (row_counts cell (own u t'))) (Z.of_nat k)). lia.
  Qed.

  Theorem distinct_replaced_in_one_cell : forall c, Z.abs (moved c) <= Z.of_nat k.
  Proof.
    intros c. destruct neighbours as (_ & L & L'). pose proof (distinct_moved c).
    assert (A : forall s : table, row_counts cell s c <= Z.of_nat (length s))
      by (intros s; apply Nat2Z.inj_le, filter_at_most).
    pose proof (A (own u t)). pose proof (A (own u t')). unfold row_counts in *. lia.
  Qed.
End DistinctValues.

(** * Levels of a tree of counts, and grouping sets: vectors one after another, whose norms add up *)

Definition over_levels (f : nat * cell_function -> Z) (levels : list (nat * cell_function)) : Z :=
  fold_right (fun level rest => f level + rest) 0 levels.

Section Levels.
  Variables (levels : list (nat * cell_function)) (k : nat) (u : Z) (t t' : table).
  Hypothesis neighbours : apart u k t t'.
  Let moved (level : nat * cell_function) c := row_counts (snd level) t' c - row_counts (snd level) t c.

  Lemma over_levels_le f b : (forall level, f level <= b) -> over_levels f levels <= Z.of_nat (length levels) * b.
  Proof. intros H. induction levels as [|x l IH]; simpl over_levels; [simpl; lia|]. cbn [length]. specialize (H x). lia. Qed.

  Theorem levels_added :
    own u t = [] ->
    over_levels (fun level => l1 (fst level) (moved level)) levels <= Z.of_nat (length levels) * Z.of_nat k /\
    over_levels (fun level => l2_squared (fst level) (moved level)) levels
    <= Z.of_nat (length levels) * (Z.of_nat k * Z.of_nat k).
  Proof.
    intros E.
    assert (A : forall level, l1 (fst level) (moved level) <= Z.of_nat k /\
      l2_squared (fst level) (moved level) <= Z.of_nat k * Z.of_nat k).
    { intros level. pose proof (rows_added (snd level) (fun _ => 1) 0 1 ltac:(lia) ltac:(lia) (fst level) k u t t' neighbours E)
        as (A & B).
      assert (M : forall c, moved level c = sums (snd level) (fun _ => 1) t' c - sums (snd level) (fun _ => 1) t c)
        by (intros c; unfold moved; rewrite !row_counts_are_sums; auto).
      rewrite (l1_ext _ _ _ (fun c _ => M c)), (l2_ext _ _ _ (fun c _ => M c)).
      replace (Z.max (- (0)) 1) with 1 in * by reflexivity. lia. }
    split; apply over_levels_le; intros level; apply A.
  Qed.

  Theorem levels_replaced :
    over_levels (fun level => l1 (fst level) (moved level)) levels <= Z.of_nat (length levels) * (2 * Z.of_nat k) /\
    over_levels (fun level => l2_squared (fst level) (moved level)) levels
    <= Z.of_nat (length levels) * (2 * (Z.of_nat k * Z.of_nat k)).
  Proof.
    assert (A : forall level, l1 (fst level) (moved level) <= 2 * Z.of_nat k /\
      l2_squared (fst level) (moved level) <= 2 * (Z.of_nat k * Z.of_nat k)).
    { intros level. pose proof (rows_replaced (snd level) (fun _ => 1) 0 1 ltac:(lia) ltac:(lia) (fst level) k u t t' neighbours)
        as (A & B).
      assert (M : forall c, moved level c = sums (snd level) (fun _ => 1) t' c - sums (snd level) (fun _ => 1) t c)
        by (intros c; unfold moved; rewrite !row_counts_are_sums; auto).
      rewrite (l1_ext _ _ _ (fun c _ => M c)), (l2_ext _ _ _ (fun c _ => M c)).
      replace (Z.max (- (0)) 1) with 1 in * by reflexivity.
      replace (Z.max ((1 - 0) * (1 - 0)) (2 * (1 * 1))) with 2 in B by reflexivity. lia. }
    split; apply over_levels_le; intros level; apply A.
  Qed.
End Levels.

(** * From a relation to a measure of it *)

(** A SUM over any relation, when a unit is added to the data. *)
Theorem sum_of_a_relation : forall r u d d' cell value low high cells,
  sound r -> added u d d' -> (forall v, low <= value v <= high) -> low <= 0 <= high ->
  l1 cells (fun c => sums cell value (rows r d') c - sums cell value (rows r d) c)
  <= Z.of_nat (rows_per_unit r) * Z.max (- low) high.
Proof.
  intros r u d d' cell value low high cells S A B Z.
  destruct (rows_of_an_added_unit r u d d' S A) as (N & E).
  apply (rows_added cell value low high B Z cells _ u); auto.
Qed.
