(** How far the rows of one unit move a count over UNION, INTERSECT and EXCEPT: [query.sensitivity.set_stability].

    A row has a value, and is in some sides. A set of sides is a number whose bits are the sides. A value is in every
    side that one of its rows is in, and it is counted if that set is [held]. *)

From Coq Require Import List ZArith NArith Lia Permutation Bool Arith.
From Lapwing Require Import Tables.
Import ListNotations.
Open Scope Z_scope.

Notation sided := (values * N)%type.

Definition indicator (b : bool) : Z := if b then 1 else 0.

Fixpoint sides_of (v : values) (l : list sided) : N :=
  match l with
  | [] => 0%N
  | r :: l => if values_eq_dec (fst r) v then N.lor (snd r) (sides_of v l) else sides_of v l
  end.

Definition set_count (held : N -> bool) (l : list sided) : Z :=
  Z.of_nat (length (filter (fun v => held (sides_of v l)) (nodup values_eq_dec (map fst l)))).

(** By how much a row in the sides [j] moves the count, if its value was in the sides [m]. *)
Definition move (held : N -> bool) (m j : N) : Z := indicator (held (N.lor m j)) - indicator (held m).

Definition subsets (sides : nat) : list N := map N.of_nat (seq 0 (2 ^ sides)).

Definition moves (held : N -> bool) (sides : nat) (possible : list N) : list Z :=
  flat_map (fun m => map (move held m) possible) (subsets sides).

Definition least (l : list Z) : Z := fold_right Z.min 0 l.
Definition greatest (l : list Z) : Z := fold_right Z.max 0 l.

(** Parts of a union: how many rows a unit has in each, and in which sets of sides such a row may be. *)
Notation parts := (list (nat * list N)).

Fixpoint lowered (held : N -> bool) (sides : nat) (ps : parts) : Z :=
  match ps with [] => 0 | p :: ps => - least (moves held sides (snd p)) * Z.of_nat (fst p) + lowered held sides ps end.

Fixpoint raised (held : N -> bool) (sides : nat) (ps : parts) : Z :=
  match ps with [] => 0 | p :: ps => greatest (moves held sides (snd p)) * Z.of_nat (fst p) + raised held sides ps end.

(** The rows of a unit, part by part. *)
Definition within (ps : parts) (l : list (list sided)) : Prop :=
  Forall2 (fun p rows => (length rows <= fst p)%nat /\ Forall (fun r => In (snd r) (snd p)) rows) ps l.

(** * Proof *)

Lemma in_subsets sides m : In m (subsets sides) <-> (m < 2 ^ N.of_nat sides)%N.
Proof.
  assert (E : N.of_nat (2 ^ sides) = (2 ^ N.of_nat sides)%N).
  { induction sides as [|s IH]; auto. rewrite Nat2N.inj_succ, N.pow_succ_r', <- IH, Nat.pow_succ_r', Nat2N.inj_mul. auto. }
  unfold subsets. rewrite in_map_iff. split.
  - intros (x & <- & I). apply in_seq in I. rewrite <- E. lia.
  - intros L. exists (N.to_nat m). split; [apply N2Nat.id|]. apply in_seq. rewrite <- E in L. lia.
Qed.

Lemma subsets_union sides a b : In a (subsets sides) -> In b (subsets sides) -> In (N.lor a b) (subsets sides).
Proof.
  rewrite !in_subsets. intros A B.
  destruct (N.eq_dec a 0) as [->|NA]; [rewrite N.lor_0_l; auto|].
  destruct (N.eq_dec b 0) as [->|NB]; [rewrite N.lor_0_r; auto|].
  assert (NC : N.lor a b <> 0%N) by (rewrite N.lor_eq_0_iff; tauto).
  apply N.log2_lt_pow2; [lia|]. rewrite N.log2_lor. apply N.max_lub_lt; apply N.log2_lt_pow2; auto; lia.
Qed.

Lemma sides_in_subsets sides v l :
  Forall (fun r : sided => In (snd r) (subsets sides)) l -> In (sides_of v l) (subsets sides).
Proof.
  induction 1 as [|r l R _ IH]; simpl.
  - apply in_subsets. lia.
  - destruct (values_eq_dec (fst r) v); auto. apply subsets_union; auto.
Qed.

Lemma sides_of_none v l : ~ In v (map fst l) -> sides_of v l = 0%N.
Proof.
  induction l as [|r l IH]; simpl; intros N; auto. destruct (values_eq_dec (fst r) v); [tauto|]. apply IH. tauto.
Qed.

Lemma any_support held l s :
  held 0%N = false -> NoDup s -> incl (map fst l) s ->
  set_count held l = Z.of_nat (length (filter (fun v => held (sides_of v l)) s)).
Proof.
  intros H D I. unfold set_count. f_equal. apply Permutation_length, NoDup_Permutation.
  - apply NoDup_filter, NoDup_nodup.
  - apply NoDup_filter. auto.
  - intros v. rewrite !filter_In, nodup_In. split; intros (J & K); split; auto.
    destruct (in_dec values_eq_dec v (map fst l)) as [|N]; auto. rewrite (sides_of_none v l N) in K. congruence.
Qed.

Lemma one_row held r l :
  held 0%N = false -> set_count held (r :: l) = set_count held l + move held (sides_of (fst r) l) (snd r).
Proof.
  intros H. set (s := nodup values_eq_dec (fst r :: map fst l)).
  assert (D : NoDup s) by apply NoDup_nodup.
  assert (I : In (fst r) s) by (apply nodup_In; simpl; auto).
  rewrite (any_support held (r :: l) s), (any_support held l s); auto.
  - apply in_split in I as (a & b & E). rewrite E in *. apply NoDup_remove_2 in D.
    rewrite !filter_app, !app_length. cbn [filter].
    assert (S : forall w, In w (a ++ b) -> held (sides_of w (r :: l)) = held (sides_of w l)).
    { intros w J. simpl. destruct (values_eq_dec (fst r) w); auto. subst. tauto. }
    rewrite (filter_ext_in (fun v => held (sides_of v (r :: l))) (fun v => held (sides_of v l)) a)
      by (intros; apply S, in_or_app; auto).
    rewrite (filter_ext_in (fun v => held (sides_of v (r :: l))) (fun v => held (sides_of v l)) b)
      by (intros; apply S, in_or_app; auto).
    simpl sides_of. destruct (values_eq_dec (fst r) (fst r)); [|congruence].
    unfold move, indicator. rewrite (N.lor_comm (sides_of (fst r) l)).
    destruct (held (N.lor (snd r) (sides_of (fst r) l))), (held (sides_of (fst r) l)); cbn [length]; lia.
  - intros v J. apply nodup_In. simpl. auto.
  - intros v J. apply nodup_In. auto.
Qed.

Lemma least_at_most l x : In x l -> least l <= x.
Proof. induction l as [|y l IH]; simpl; intros I; [tauto|]. destruct I as [->|I]; [|specialize (IH I)]; lia. Qed.

Lemma greatest_at_least l x : In x l -> x <= greatest l.
Proof. induction l as [|y l IH]; simpl; intros I; [tauto|]. destruct I as [->|I]; [|specialize (IH I)]; lia. Qed.

Lemma least_nonpositive l : least l <= 0.
Proof. induction l; simpl; lia. Qed.

Lemma greatest_nonnegative l : 0 <= greatest l.
Proof. induction l; simpl; lia. Qed.

Lemma rows_of_a_part held sides possible new l :
  held 0%N = false -> Forall (fun r : sided => In (snd r) (subsets sides)) (new ++ l) ->
  Forall (fun r => In (snd r) possible) new ->
  Z.of_nat (length new) * least (moves held sides possible) <= set_count held (new ++ l) - set_count held l
  <= Z.of_nat (length new) * greatest (moves held sides possible).
Proof.
  intros H. induction new as [|r new IH]; simpl app; intros S P; [simpl; lia|].
  inversion S as [|? ? Sr S']; inversion P as [|? ? Pr P']; subst. specialize (IH S' P').
  rewrite one_row by auto. cbn [length].
  assert (I : In (move held (sides_of (fst r) (new ++ l)) (snd r)) (moves held sides possible)).
  { apply in_flat_map. exists (sides_of (fst r) (new ++ l)). split; [apply sides_in_subsets; auto|]. apply in_map. auto. }
  pose proof (least_at_most _ _ I). pose proof (greatest_at_least _ _ I). lia.
Qed.

Lemma rows_of_all_parts held sides ps new l :
  held 0%N = false -> Forall (fun r : sided => In (snd r) (subsets sides)) (concat new ++ l) -> within ps new ->
  - lowered held sides ps <= set_count held (concat new ++ l) - set_count held l <= raised held sides ps.
Proof.
  intros H S W. induction W as [|p n ps new (L & P) W IH]; simpl in *; [lia|].
  rewrite <- app_assoc in *. apply Forall_app in S as (Sn & S). specialize (IH S).
  pose proof (rows_of_a_part held sides (snd p) n (concat new ++ l) H (proj2 (Forall_app _ _ _) (conj Sn S)) P).
  pose proof (least_nonpositive (moves held sides (snd p))). pose proof (greatest_nonnegative (moves held sides (snd p))).
  nia.
Qed.

(** A unit is added: [common] are the rows of all others, [mine] those of the unit. *)
Theorem sets_added : forall held sides ps common mine,
  held 0%N = false -> Forall (fun r => In (snd r) (subsets sides)) (concat mine ++ common) -> within ps mine ->
  Z.abs (set_count held (concat mine ++ common) - set_count held common)
  <= Z.max (lowered held sides ps) (raised held sides ps).
Proof. intros held sides ps common mine H S W. pose proof (rows_of_all_parts held sides ps mine common H S W). lia. Qed.

(** A unit takes the place of another. *)
Theorem sets_replaced : forall held sides ps common mine yours,
  held 0%N = false -> Forall (fun r => In (snd r) (subsets sides)) (concat mine ++ common) ->
  Forall (fun r => In (snd r) (subsets sides)) (concat yours ++ common) -> within ps mine -> within ps yours ->
  Z.abs (set_count held (concat yours ++ common) - set_count held (concat mine ++ common))
  <= lowered held sides ps + raised held sides ps.
Proof.
  intros held sides ps common mine yours H S S' W W'.
  pose proof (rows_of_all_parts held sides ps mine common H S W).
  pose proof (rows_of_all_parts held sides ps yours common H S' W'). lia.
Qed.

(** * Two sides whose rows nobody shares: side A is bit 0, side B bit 1 *)

Definition two_parts (k_a k_b : nat) : parts := [(k_a, [0; 1]%N); (k_b, [0; 2]%N)].

Definition in_either (m : N) : bool := negb (m =? 0)%N. (* UNION *)
Definition in_both (m : N) : bool := (m =? 3)%N. (* INTERSECT *)
Definition in_first_alone (m : N) : bool := (m =? 1)%N. (* EXCEPT *)

Theorem union_bounds : forall k_a k_b,
  lowered in_either 2 (two_parts k_a k_b) = 0 /\ raised in_either 2 (two_parts k_a k_b) = Z.of_nat k_a + Z.of_nat k_b.
Proof.
  intros. unfold two_parts. cbn [lowered raised fst snd].
  change (least (moves in_either 2 [0; 1]%N)) with 0. change (greatest (moves in_either 2 [0; 1]%N)) with 1.
  change (least (moves in_either 2 [0; 2]%N)) with 0. change (greatest (moves in_either 2 [0; 2]%N)) with 1.
  lia.
Qed.

Theorem intersect_bounds : forall k_a k_b,
  lowered in_both 2 (two_parts k_a k_b) = 0 /\ raised in_both 2 (two_parts k_a k_b) = Z.of_nat k_a + Z.of_nat k_b.
Proof.
  intros. unfold two_parts. cbn [lowered raised fst snd].
  change (least (moves in_both 2 [0; 1]%N)) with 0. change (greatest (moves in_both 2 [0; 1]%N)) with 1.
  change (least (moves in_both 2 [0; 2]%N)) with 0. change (greatest (moves in_both 2 [0; 2]%N)) with 1.
  lia.
Qed.

Theorem except_bounds : forall k_a k_b,
  lowered in_first_alone 2 (two_parts k_a k_b) = Z.of_nat k_b /\
  raised in_first_alone 2 (two_parts k_a k_b) = Z.of_nat k_a.
Proof.
  intros. unfold two_parts. cbn [lowered raised fst snd].
  change (least (moves in_first_alone 2 [0; 1]%N)) with 0. change (greatest (moves in_first_alone 2 [0; 1]%N)) with 1.
  change (least (moves in_first_alone 2 [0; 2]%N)) with (-1). change (greatest (moves in_first_alone 2 [0; 2]%N)) with 0.
  lia.
Qed.
