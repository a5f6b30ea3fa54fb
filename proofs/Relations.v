(** Relations over protected rows: what a plan of [query.relations] may be made of, what its rows are, and how many
    of them one unit has.

    The theorems are [unit_local], [bag_of_rows], [at_most_rows_per_unit] and [rows_of_neighbours]. *)

From Coq Require Import List ZArith Lia Permutation Bool Arith.
From Lapwing Require Import Tables.
Import ListNotations.
Open Scope Z_scope.

Definition database := nat -> table. (* the protected tables, by number *)
Definition own_data (u : Z) (d : database) : database := fun n => own u (d n).

Inductive kind := Inner | Left | Semi | Anti | Mark.

(** What a row becomes beside the rows that it matches. *)
Definition joined (k : kind) (v : values) (matches : list values) (nulls : values) : list values :=
  match k, matches with
  | Inner, _ => map (fun w => v ++ w) matches
  | Left, [] => [v ++ nulls]
  | Left, _ => map (fun w => v ++ w) matches
  | Semi, [] => []
  | Semi, _ => [v]
  | Anti, [] => [v]
  | Anti, _ => []
  | Mark, [] => [v ++ [Some 0]]
  | Mark, _ => [v ++ [Some 1]]
  end.

Definition multiplies (k : kind) : bool := match k with Inner | Left => true | _ => false end.

(** SQL's equality: NULL equals nothing. *)
Definition known (a : values) : bool := forallb (fun x => match x with None => false | Some _ => true end) a.
Definition equals (a b : values) : bool := known a && known b && if values_eq_dec a b then true else false.

Inductive relation :=
  | Kept (number most : nat) (hash : Z -> values -> values)
  | Filter (condition : values -> bool) (source : relation)
  | Project (expressions : values -> values) (source : relation)
  | PublicJoin (k : kind) (ours theirs : values -> values) (condition : values -> values -> bool)
      (public : list values) (nulls : values) (source : relation)
  | UnitJoin (k : kind) (on : values -> values -> bool) (matches matched : nat) (nulls : values)
      (source other : relation)
  | FullJoin (on : values -> values -> bool) (matches matched : nat) (nulls other_nulls : values)
      (source other : relation)
  | UnionAll (one another : relation)
  | Distinct (expressions : values -> values) (source : relation)
  | OneForEachUnit (aggregate : list values -> values) (source : relation)
  | OneForEachGroup (group : values -> values) (aggregate : list values -> values) (source : relation)
  | OneForFirstGroups (most : nat) (hash : Z -> values -> values) (group : values -> values)
      (aggregate : list values -> values) (source : relation)
  | FirstRows (most : nat) (hash : Z -> values -> values) (source : relation)
  | FirstGroups (most : nat) (hash : Z -> values -> values) (group : values -> values) (source : relation)
  | Window (function : list values -> values -> values) (source : relation).

(** * What the rows are *)

(** A function of one row at a time: its rows keep the unit. *)
Definition row_by_row (f : values -> list values) (t : table) : table :=
  flat_map (fun r => map (pair (fst r)) (f (snd r))) t.

(** PARTITION BY the unit: a function of all rows of a unit. *)
Definition unit_by_unit (f : Z -> list values -> list values) (t : table) : table :=
  flat_map (fun u => map (pair u) (f u (map snd (own u t)))) (units t).

(** The rows of a table that equal the unit of a row, and match it. *)
Definition partners (on : values -> bool) (u : Z) (t : table) : list values := filter on (map snd (own u t)).

Definition unit_join (k : kind) (on : values -> values -> bool) (nulls : values) (s o : table) : table :=
  flat_map (fun r => map (pair (fst r)) (joined k (snd r) (partners (on (snd r)) (fst r) o) nulls)) s.

(** The rows of the right side that match nothing, with NULLs before them. *)
Definition alone (on : values -> values -> bool) (nulls : values) (s o : table) : table :=
  flat_map (fun r => match partners (fun v => on v (snd r)) (fst r) s with
                     | [] => [(fst r, nulls ++ snd r)] | _ => [] end) o.

Definition same_group (group : values -> values) (g v : values) : bool :=
  if values_eq_dec (group v) g then true else false.

Definition grouped (group : values -> values) (aggregate : list values -> values) (l : list values) : list values :=
  map (fun g => g ++ aggregate (sort (fun _ => []) (filter (same_group group g) l)))
      (nodup values_eq_dec (map group l)).

Definition first_groups (most : nat) (hash : values -> values) (group : values -> values) (l : list values)
  : list values :=
  let kept := firstn most (sort hash (nodup values_eq_dec (map group l))) in
  filter (fun v => if in_dec values_eq_dec (group v) kept then true else false) l.

Fixpoint rows (r : relation) (d : database) : table :=
  match r with
  | Kept n most hash => unit_by_unit (fun u l => firstn most (sort (hash u) l)) (d n)
  | Filter p s => row_by_row (fun v => if p v then [v] else []) (rows s d)
  | Project f s => row_by_row (fun v => [f v]) (rows s d)
  | PublicJoin k ours theirs p public nulls s =>
      row_by_row (fun v => joined k v (filter (fun w => equals (ours v) (theirs w) && p v w) public) nulls) (rows s d)
  | UnitJoin k on _ _ nulls s o => unit_join k on nulls (rows s d) (rows o d)
  | FullJoin on _ _ nulls other_nulls s o =>
      unit_join Left on nulls (rows s d) (rows o d) ++ alone on other_nulls (rows s d) (rows o d)
  | UnionAll a b => rows a d ++ rows b d
  | Distinct f s => nodup row_eq_dec (row_by_row (fun v => [f v]) (rows s d))
  | OneForEachUnit aggregate s => unit_by_unit (fun _ l => [aggregate (sort (fun _ => []) l)]) (rows s d)
  | OneForEachGroup group aggregate s => unit_by_unit (fun _ => grouped group aggregate) (rows s d)
  | OneForFirstGroups most hash group aggregate s =>
      unit_by_unit (fun u l => grouped group aggregate (first_groups most (hash u) group l)) (rows s d)
  | FirstRows most hash s => unit_by_unit (fun u l => firstn most (sort (hash u) l)) (rows s d)
  | FirstGroups most hash group s => unit_by_unit (fun u => first_groups most (hash u) group) (rows s d)
  | Window f s => unit_by_unit (fun _ l => map (fun v => v ++ f (sort (fun _ => []) l) v) l) (rows s d)
  end.

(** * How many rows a unit has *)

(** The most public rows that share the values which a join compares. *)
Definition multiplicity (theirs : values -> values) (public : list values) : nat :=
  list_max (map (fun w => length (filter (fun x => equals (theirs w) (theirs x)) public)) public).

Definition rows_of_unit_join (k : kind) (own other matches matched : nat) : nat :=
  (if multiplies k then
    let both := match k with
                | Left => Nat.max own (other * matched + own - 1)
                | _ => other * matched
                end in
    Nat.min (own * Nat.max 1 (Nat.min matches other)) both
  else own)%nat.

Definition rows_of_full_join (own other matches matched : nat) : nat :=
  (if Nat.min matches matched <=? 1 then own + other else Nat.max (own * other) (own + other))%nat.

Fixpoint rows_per_unit (r : relation) : nat :=
  match r with
  | Kept _ most _ => most
  | Filter _ s => rows_per_unit s
  | Project _ s => rows_per_unit s
  | PublicJoin k _ theirs _ public _ s =>
      rows_per_unit s * (if multiplies k then Nat.max 1 (multiplicity theirs public) else 1)
  | UnitJoin k _ matches matched _ s o =>
      rows_of_unit_join k (rows_per_unit s) (rows_per_unit o) matches matched
  | FullJoin _ matches matched _ _ s o => rows_of_full_join (rows_per_unit s) (rows_per_unit o) matches matched
  | UnionAll a b => rows_per_unit a + rows_per_unit b
  | Distinct _ s => rows_per_unit s
  | OneForEachUnit _ _ => 1
  | OneForEachGroup _ _ s => rows_per_unit s
  | OneForFirstGroups most _ _ _ s => Nat.min (rows_per_unit s) most
  | FirstRows most _ s => Nat.min most (rows_per_unit s)
  | FirstGroups _ _ _ s => rows_per_unit s
  | Window _ s => rows_per_unit s
  end.

(** What a join is told about its sides: how many rows of one side a row of the other can match. *)
Definition at_most_matches (on : values -> values -> bool) (matches matched : nat) (s o : database -> table) : Prop :=
  (forall d u v, In (u, v) (s d) -> (length (partners (on v) u (o d)) <= matches)%nat) /\
  (forall d u w, In (u, w) (o d) -> (length (partners (fun v => on v w) u (s d)) <= matched)%nat).

Fixpoint sound (r : relation) : Prop :=
  match r with
  | Kept _ _ _ => True
  | Filter _ s | Project _ s | PublicJoin _ _ _ _ _ _ s | Distinct _ s | OneForEachUnit _ s
  | OneForEachGroup _ _ s | OneForFirstGroups _ _ _ _ s | FirstRows _ _ s | FirstGroups _ _ _ s | Window _ s => sound s
  | UnitJoin _ on matches matched _ s o | FullJoin on matches matched _ _ s o =>
      sound s /\ sound o /\ at_most_matches on matches matched (rows s) (rows o)
  | UnionAll a b => sound a /\ sound b
  end.

(** * Steps of the proof *)

Lemma own_row_by_row f u t : own u (row_by_row f t) = row_by_row f (own u t).
Proof.
  unfold own, row_by_row. apply filter_of_flat_map. intros r y I.
  apply in_map_iff in I as (w & <- & _). auto.
Qed.

Lemma row_by_row_permutation f t t' : Permutation t t' -> Permutation (row_by_row f t) (row_by_row f t').
Proof. intros P. apply flat_map_of_permutations; auto. Qed.

Lemma row_by_row_at_most f k t :
  (forall v, (length (f v) <= k)%nat) -> (length (row_by_row f t) <= length t * k)%nat.
Proof. intros H. apply flat_map_at_most. intros r _. rewrite map_length. apply H. Qed.

Lemma in_units u t : In u (units t) <-> exists v, In (u, v) t.
Proof.
  unfold units. rewrite nodup_In, in_map_iff. split.
  - intros ([u' v] & E & I). simpl in E. subst. eauto.
  - intros (v & I). exists (u, v). auto.
Qed.

Lemma own_empty u t : ~ In u (units t) -> own u t = [].
Proof.
  intros N. apply filter_none. intros [v x] I. simpl. destruct (Z.eqb_spec v u); auto. subst.
  destruct N. apply in_units. eauto.
Qed.

Lemma own_of_pairs u v l : own u (map (pair v) l) = if v =? u then map (pair v) l else [].
Proof.
  destruct (Z.eqb_spec v u) as [F|F].
  - apply filter_all. intros r I. apply in_map_iff in I as (w & <- & _). simpl. apply Z.eqb_eq. auto.
  - apply filter_none. intros r I. apply in_map_iff in I as (w & <- & _). simpl. apply Z.eqb_neq. auto.
Qed.

Lemma own_of_one_unit (g : Z -> list values) u l :
  NoDup l -> own u (flat_map (fun v => map (pair v) (g v)) l) = if in_dec Z.eq_dec u l then map (pair u) (g u) else [].
Proof.
  induction l as [|v l IH]; intros D; auto. inversion D as [|x y N D']; subst.
  cbn [flat_map]. rewrite own_app, own_of_pairs, IH; auto. simpl. destruct (Z.eqb_spec v u) as [F|F].
  - subst. destruct (in_dec Z.eq_dec u l); [tauto|]. destruct (Z.eq_dec u u); [|congruence]. apply app_nil_r.
  - destruct (Z.eq_dec v u); [congruence|]. destruct (in_dec Z.eq_dec u l); auto.
Qed.

Lemma own_unit_by_unit f u t :
  own u (unit_by_unit f t) = if in_dec Z.eq_dec u (units t) then map (pair u) (f u (map snd (own u t))) else [].
Proof. unfold unit_by_unit. rewrite (own_of_one_unit (fun u => f u (map snd (own u t)))); auto. apply NoDup_nodup. Qed.

Lemma units_own u t : units (own u t) = if in_dec Z.eq_dec u (units t) then [u] else [].
Proof.
  destruct (in_dec Z.eq_dec u (units t)) as [I|N].
  - assert (A : forall x, In x (units (own u t)) -> x = u).
    { intros x J. apply in_units in J as (v & J). apply in_own in J as (_ & J). auto. }
    assert (B : In u (units (own u t))).
    { apply in_units in I as (v & I). apply in_units. exists v. apply in_own. auto. }
    assert (D : NoDup (units (own u t))) by apply NoDup_nodup.
    destruct (units (own u t)) as [|x [|y l]].
    + destruct B.
    + rewrite (A x); simpl; auto.
    + inversion D as [|? ? M _]; subst. destruct M. rewrite (A x), (A y); simpl; auto.
  - rewrite own_empty; auto.
Qed.

Lemma unit_by_unit_local f u t : own u (unit_by_unit f t) = unit_by_unit f (own u t).
Proof.
  rewrite own_unit_by_unit. unfold unit_by_unit. rewrite units_own.
  destruct (in_dec Z.eq_dec u (units t)); simpl; auto. rewrite own_own, app_nil_r. auto.
Qed.

Lemma unit_by_unit_permutation f t t' :
  (forall u l l', Permutation l l' -> Permutation (f u l) (f u l')) ->
  Permutation t t' -> Permutation (unit_by_unit f t) (unit_by_unit f t').
Proof.
  intros F P. apply flat_map_of_permutations.
  - apply nodup_permutation. apply Permutation_map. auto.
  - intros u. apply Permutation_map. apply F. apply Permutation_map. apply own_permutation. auto.
Qed.

Lemma unit_by_unit_at_most f u t k :
  (forall l, length l = length (own u t) -> (length (f u l) <= k)%nat) -> (length (own u (unit_by_unit f t)) <= k)%nat.
Proof.
  intros H. rewrite own_unit_by_unit. destruct (in_dec Z.eq_dec u (units t)); simpl; try lia.
  rewrite map_length. apply H. apply map_length.
Qed.

Lemma partners_permutation on u t t' : Permutation t t' -> Permutation (partners on u t) (partners on u t').
Proof. intros P. apply filter_permutation, Permutation_map, own_permutation. auto. Qed.

Lemma partners_own on u t : partners on u (own u t) = partners on u t.
Proof. unfold partners. rewrite own_own. auto. Qed.

Lemma joined_permutation k v m m' nulls : Permutation m m' -> Permutation (joined k v m nulls) (joined k v m' nulls).
Proof.
  intros P. destruct k; simpl; try (apply Permutation_map; auto);
    destruct m as [|w m]; destruct m' as [|w' m']; auto;
    try (apply Permutation_nil in P; discriminate);
    try (apply Permutation_sym, Permutation_nil in P; discriminate).
  apply (Permutation_map (fun w => v ++ w)) in P. auto.
Qed.

Lemma joined_at_most k v m nulls :
  (length (joined k v m nulls) <= if multiplies k then Nat.max 1 (length m) else 1)%nat.
Proof. destruct k, m; cbn [joined multiplies map length]; rewrite ?map_length; lia. Qed.

Lemma filter_in_flat_map {A} (f : A -> table) (g : A -> table) p l :
  (forall x, In x (filter p l) -> f x = g x) -> flat_map f (filter p l) = flat_map g (filter p l).
Proof.
  generalize (filter p l) as m. induction m as [|x m IH]; simpl; intros H; auto.
  rewrite (H x), IH; auto.
Qed.

Lemma own_unit_join k on nulls u s o : own u (unit_join k on nulls s o) = unit_join k on nulls (own u s) (own u o).
Proof.
  unfold own at 1, unit_join. rewrite (filter_of_flat_map _ (fun r => fst r =? u)).
  - apply filter_in_flat_map. intros r I. apply in_own in I as (_ & ->). rewrite partners_own. auto.
  - intros r y I. apply in_map_iff in I as (w & <- & _). auto.
Qed.

Lemma unit_join_permutation k on nulls s s' o o' :
  Permutation s s' -> Permutation o o' -> Permutation (unit_join k on nulls s o) (unit_join k on nulls s' o').
Proof.
  intros P Q. apply flat_map_of_permutations; auto. intros r.
  apply Permutation_map, joined_permutation, partners_permutation. auto.
Qed.

Lemma own_alone on nulls u s o : own u (alone on nulls s o) = alone on nulls (own u s) (own u o).
Proof.
  unfold own at 1, alone. rewrite (filter_of_flat_map _ (fun r => fst r =? u)).
  - apply filter_in_flat_map. intros r I. apply in_own in I as (_ & ->). rewrite partners_own. auto.
  - intros r y I. destruct (partners (fun v => on v (snd r)) (fst r) s); simpl in I; [|tauto].
    destruct I as [<-|[]]. auto.
Qed.

Lemma alone_permutation on nulls s s' o o' :
  Permutation s s' -> Permutation o o' -> Permutation (alone on nulls s o) (alone on nulls s' o').
Proof.
  intros P Q. apply flat_map_of_permutations; auto. intros r.
  pose proof (partners_permutation (fun v => on v (snd r)) (fst r) _ _ P) as H.
  destruct (partners (fun v => on v (snd r)) (fst r) s), (partners (fun v => on v (snd r)) (fst r) s'); auto.
  - apply Permutation_nil in H. discriminate.
  - apply Permutation_sym, Permutation_nil in H. discriminate.
Qed.

Lemma grouped_permutation group aggregate l l' :
  Permutation l l' -> Permutation (grouped group aggregate l) (grouped group aggregate l').
Proof.
  intros P. unfold grouped.
  rewrite (map_ext _ (fun g => g ++ aggregate (sort (fun _ => []) (filter (same_group group g) l')))).
  - apply Permutation_map, nodup_permutation, Permutation_map. auto.
  - intros g. rewrite (sort_unique _ _ _ (filter_permutation (same_group group g) _ _ P)). auto.
Qed.

Lemma grouped_at_most group aggregate l : (length (grouped group aggregate l) <= length l)%nat.
Proof.
  unfold grouped. rewrite map_length. etransitivity; [apply nodup_at_most|]. rewrite map_length. auto.
Qed.

Lemma first_groups_permutation most hash group l l' :
  Permutation l l' -> Permutation (first_groups most hash group l) (first_groups most hash group l').
Proof.
  intros P. unfold first_groups.
  rewrite (sort_unique hash _ _ (nodup_permutation values_eq_dec _ _ (Permutation_map group P))).
  apply filter_permutation. auto.
Qed.

(** The groups that are ours are at most so many. *)
Lemma first_groups_at_most most hash group l :
  (length (nodup values_eq_dec (map group (first_groups most hash group l))) <= most)%nat.
Proof.
  unfold first_groups. set (kept := firstn most _).
  transitivity (length kept); [|apply firstn_le_length].
  apply NoDup_incl_length; [apply NoDup_nodup|].
  intros g I. apply nodup_In, in_map_iff in I as (v & <- & I). apply filter_In in I as (_ & I).
  destruct (in_dec values_eq_dec (group v) kept); auto. discriminate.
Qed.

(** * Unit-local, whatever the order of the rows *)

Theorem unit_local : forall r u d, own u (rows r d) = rows r (own_data u d).
Proof.
  intros r u d. induction r; simpl;
    rewrite ?own_row_by_row, ?unit_by_unit_local, ?own_unit_join, ?own_app, ?own_alone, ?IHr, ?IHr1, ?IHr2;
    try reflexivity.
  - rewrite own_unit_join, IHr1, IHr2. reflexivity.
  - unfold own at 1. rewrite filter_nodup. fold (own u (row_by_row (fun v => [expressions v]) (rows r d))).
    rewrite own_row_by_row, IHr. reflexivity.
Qed.

Theorem bag_of_rows : forall r d d', (forall n, Permutation (d n) (d' n)) -> Permutation (rows r d) (rows r d').
Proof.
  intros r d d' P. induction r; simpl.
  - apply unit_by_unit_permutation; auto. intros u l l' Q. rewrite (sort_unique _ _ _ Q). auto.
  - apply row_by_row_permutation. auto.
  - apply row_by_row_permutation. auto.
  - apply row_by_row_permutation. auto.
  - apply unit_join_permutation; auto.
  - apply Permutation_app; [apply unit_join_permutation|apply alone_permutation]; auto.
  - apply Permutation_app; auto.
  - apply nodup_permutation, row_by_row_permutation. auto.
  - apply unit_by_unit_permutation; auto. intros u l l' Q. rewrite (sort_unique _ _ _ Q). auto.
  - apply unit_by_unit_permutation; auto. intros u l l' Q. apply grouped_permutation. auto.
  - apply unit_by_unit_permutation; auto. intros u l l' Q. apply grouped_permutation, first_groups_permutation. auto.
  - apply unit_by_unit_permutation; auto. intros u l l' Q. rewrite (sort_unique _ _ _ Q). auto.
  - apply unit_by_unit_permutation; auto. intros u l l' Q. apply first_groups_permutation. auto.
  - apply unit_by_unit_permutation; auto. intros u l l' Q. rewrite (sort_unique _ _ _ Q). apply Permutation_map. auto.
Qed.

(** * The bounds *)

Lemma matches_at_most (ours theirs : values -> values) (p : values -> values -> bool) public v :
  (length (filter (fun w => equals (ours v) (theirs w) && p v w) public) <= multiplicity theirs public)%nat.
Proof.
  destruct (filter (fun w : values => equals (ours v) (theirs w) && p v w) public) as [|w l] eqn:E; simpl; try lia.
  assert (I : In w public /\ equals (ours v) (theirs w) = true).
  { assert (J : In w (filter (fun w => equals (ours v) (theirs w) && p v w) public)) by (rewrite E; simpl; auto).
    apply filter_In in J as (J & K). apply andb_prop in K. tauto. }
  destruct I as (I & K). unfold equals in K.
  destruct (values_eq_dec (ours v) (theirs w)) as [F|]; [|rewrite andb_false_r in K; discriminate].
  change (S (length l)) with (length (w :: l)). rewrite <- E.
  transitivity (length (filter (fun x => equals (theirs w) (theirs x)) public)).
  - apply filter_weaker. intros x H. apply andb_prop in H as (H & _). rewrite <- F. auto.
  - assert (M : Forall (fun k => (k <= multiplicity theirs public)%nat)
        (map (fun w => length (filter (fun x => equals (theirs w) (theirs x)) public)) public))
      by (apply list_max_le; auto).
    rewrite Forall_forall in M. apply M, in_map_iff. exists w. auto.
Qed.

Fixpoint total {A} (f : A -> nat) (l : list A) : nat :=
  match l with [] => 0%nat | x :: l => (f x + total f l)%nat end.

Lemma total_at_most {A} (f : A -> nat) k l : (forall x, In x l -> (f x <= k)%nat) -> (total f l <= length l * k)%nat.
Proof.
  induction l as [|x l IH]; intros H; auto. cbn [total length].
  pose proof (H x (or_introl eq_refl)). specialize (IH (fun y I => H y (or_intror I))). lia.
Qed.

(** Pairs are counted from either side. *)
Lemma pairs_either_way (on : values -> values -> bool) l m :
  total (fun v => length (filter (on v) m)) l = total (fun w => length (filter (fun v => on v w) l)) m.
Proof.
  induction l as [|v l IH]; simpl.
  - induction m; simpl; auto.
  - rewrite IH. clear IH. induction m as [|w m IH]; simpl; auto.
    destruct (on v w); simpl; rewrite <- ?IH; lia.
Qed.

Lemma length_flat_map {A B} (f : A -> list B) l : length (flat_map f l) = total (fun x => length (f x)) l.
Proof. induction l; simpl; auto. rewrite app_length. auto. Qed.

Lemma total_map {A B} (g : A -> B) f l : total f (map g l) = total (fun x => f (g x)) l.
Proof. induction l; simpl; auto. Qed.

Lemma total_ext {A} (f g : A -> nat) l : (forall x, In x l -> f x = g x) -> total f l = total g l.
Proof. induction l as [|x l IH]; simpl; intros H; auto with arith. Qed.

(** What a unit has of a join: a number for each of its rows, of how many it matches. *)
Lemma length_unit_join k on nulls u s o :
  length (own u (unit_join k on nulls s o)) =
  total (fun v => length (joined k v (filter (on v) (map snd (own u o))) nulls)) (map snd (own u s)).
Proof.
  rewrite own_unit_join. unfold unit_join. rewrite length_flat_map, total_map. apply total_ext.
  intros r I. apply in_own in I as (_ & ->). rewrite map_length, partners_own. auto.
Qed.

Lemma length_alone on nulls u s o :
  length (own u (alone on nulls s o)) =
  total (fun w => if length (filter (fun v => on v w) (map snd (own u s))) =? 0 then 1 else 0)%nat (map snd (own u o)).
Proof.
  rewrite own_alone. unfold alone. rewrite length_flat_map, total_map. apply total_ext.
  intros r I. apply in_own in I as (_ & ->). rewrite partners_own. unfold partners.
  destruct (filter _ (map snd (own u s))); auto.
Qed.

(** Pairs, and rows that are alone. *)
Lemma left_join_counts (f : values -> nat) l :
  (total (fun v => Nat.max 1 (f v)) l = total f l + total (fun v => if f v =? 0 then 1 else 0) l)%nat.
Proof. induction l as [|v l IH]; auto. cbn [total]. rewrite IH. destruct (f v); simpl; lia. Qed.

Lemma alone_or_not (f : values -> nat) k l :
  (forall v, In v l -> (f v <= k)%nat) ->
  (total f l <= (length l - total (fun v => if f v =? 0 then 1 else 0) l) * k)%nat /\
  (total (fun v => if f v =? 0 then 1 else 0) l <= length l)%nat.
Proof.
  induction l as [|v l IH]; intros H; [simpl; auto|]. cbn [total length].
  pose proof (H v (or_introl eq_refl)). destruct (IH (fun y I => H y (or_intror I))) as (A & B).
  set (a := total f l) in *. set (b := total (fun v => if f v =? 0 then 1 else 0)%nat l) in *. destruct (f v) as [|n]; cbn [Nat.eqb Nat.add].
  - split; [|lia]. replace (S (length l) - S b)%nat with (length l - b)%nat by lia. lia.
  - split; [|lia]. replace (S (length l) - b)%nat with (S (length l - b)) by lia. lia.
Qed.

Section Join.
  Variables (on : values -> values -> bool) (l m : list values) (own other matches matched : nat).
  Let met v := length (filter (on v) m).
  Let met_by w := length (filter (fun v => on v w) l).
  Hypothesis own_rows : (length l <= own)%nat.
  Hypothesis other_rows : (length m <= other)%nat.
  Hypothesis at_most_matches_ : forall v, In v l -> (met v <= matches)%nat.
  Hypothesis at_most_matched : forall w, In w m -> (met_by w <= matched)%nat.

  Lemma met_at_most v : In v l -> (met v <= Nat.min matches other)%nat.
  Proof. intros I. specialize (at_most_matches_ v I). pose proof (filter_at_most (on v) m). unfold met in *. lia. Qed.

  Lemma inner_at_most : (total met l <= own * Nat.max 1 (Nat.min matches other))%nat /\ (total met l <= other * matched)%nat.
  Proof.
    split.
    - etransitivity; [apply total_at_most, met_at_most|]. nia.
    - unfold met. rewrite pairs_either_way. etransitivity; [apply total_at_most, at_most_matched|]. nia.
  Qed.

  Lemma left_at_most :
    (total (fun v => Nat.max 1 (met v)) l <= own * Nat.max 1 (Nat.min matches other))%nat /\
    (total (fun v => Nat.max 1 (met v)) l <= Nat.max own (other * matched + own - 1))%nat.
  Proof.
    split.
    - etransitivity; [apply (total_at_most _ (Nat.max 1 (Nat.min matches other)))|].
      + intros v I. pose proof (met_at_most v I). lia.
      + nia.
    - rewrite left_join_counts. destruct inner_at_most as (_ & A).
      destruct (alone_or_not met (Nat.min matches other) l met_at_most) as (B & C).
      set (p := total met l) in *. set (a := total (fun v => if met v =? 0 then 1 else 0)%nat l) in *.
      destruct p; [lia|].
      assert (a < length l)%nat; [|lia].
      destruct (Nat.eq_dec a (length l)) as [E|]; [|lia]. rewrite E, Nat.sub_diag in B. simpl in B. lia.
  Qed.

  Lemma full_at_most :
    (total (fun v => Nat.max 1 (met v)) l + total (fun w => if met_by w =? 0 then 1 else 0) m
     <= rows_of_full_join own other matches matched)%nat.
  Proof.
    rewrite left_join_counts. unfold rows_of_full_join.
    destruct (alone_or_not met (Nat.min matches other) l met_at_most) as (B & C).
    assert (D : forall w, In w m -> (met_by w <= Nat.min matched (length l))%nat).
    { intros w I. specialize (at_most_matched w I). pose proof (filter_at_most (fun v => on v w) l).
      unfold met_by in *. lia. }
    destruct (alone_or_not met_by _ m D) as (E & F).
    assert (P : total met l = total met_by m) by apply pairs_either_way.
    assert (G : forall v, In v l ->
      (met v <= length m - total (fun w => if met_by w =? 0 then 1 else 0) m)%nat).
    { intros v I. clear - I. unfold met, met_by. induction m as [|w m' IH]; cbn [total filter length]; auto.
      pose proof (filter_at_most (on v) m') as Q.
      assert (H : (total (fun w => if length (filter (fun v => on v w) l) =? 0 then 1 else 0) m' <= length m')%nat).
      { clear. induction m' as [|x m' IH]; simpl; auto. destruct (_ =? 0)%nat; lia. }
      cbv zeta in IH. destruct (on v w) eqn:O; cbn [length].
      - assert (N : length (filter (fun v => on v w) l) <> 0%nat).
        { intros Z. apply length_zero_iff_nil in Z. assert (J : In v (filter (fun v => on v w) l)) by (apply filter_In; auto).
          rewrite Z in J. destruct J. }
        destruct (length (filter (fun v => on v w) l)); [congruence|]. cbn [Nat.eqb Nat.add]. lia.
      - destruct (length (filter (fun v => on v w) l) =? 0)%nat; lia. }
    destruct (alone_or_not met _ l G) as (H & _).
    set (p := total met l) in *. set (a := total (fun v => if met v =? 0 then 1 else 0)%nat l) in *.
    set (b := total (fun w => if met_by w =? 0 then 1 else 0)%nat m) in *.
    destruct (Nat.leb_spec (Nat.min matches matched) 1) as [L|L].
    - destruct (Nat.le_ge_cases matches matched) as [M|M].
      + assert (p <= length l - a)%nat; [|lia]. etransitivity; [exact B|].
        transitivity ((length l - a) * 1)%nat; [apply Nat.mul_le_mono_l|]; lia.
      + assert (p <= length m - b)%nat; [|lia]. rewrite P. etransitivity; [exact E|].
        transitivity ((length m - b) * 1)%nat; [apply Nat.mul_le_mono_l|]; lia.
    - assert (K : (p + a + b <= length l * length m \/ p + a + b <= length l + length m)%nat).
      { remember (length l - a)%nat as x. remember (length m - b)%nat as y.
        destruct x as [|x]; [simpl in H; lia|]. destruct y as [|y]; [rewrite Nat.mul_0_r in H; lia|].
        left. replace (length l) with (S x + a)%nat by lia. replace (length m) with (S y + b)%nat by lia.
        etransitivity; [apply Nat.add_le_mono_r, Nat.add_le_mono_r, H|]. clear. lia. }
      assert (length l * length m <= own * other)%nat by (apply Nat.mul_le_mono; auto). lia.
  Qed.
End Join.

Lemma row_by_row_bound f k u t n :
  (forall v, (length (f v) <= k)%nat) -> (length (own u t) <= n)%nat -> (length (own u (row_by_row f t)) <= n * k)%nat.
Proof.
  intros H L. rewrite own_row_by_row. etransitivity; [apply (row_by_row_at_most f k); auto|].
  apply Nat.mul_le_mono_r. auto.
Qed.

Section TwoSides.
  Variables (on : values -> values -> bool) (matches matched own_most other_most : nat) (s o : table) (u : Z).
  Hypothesis own_rows : (length (own u s) <= own_most)%nat.
  Hypothesis other_rows : (length (own u o) <= other_most)%nat.
  Hypothesis meets : forall v, In (u, v) s -> (length (partners (on v) u o) <= matches)%nat.
  Hypothesis is_met : forall w, In (u, w) o -> (length (partners (fun v => on v w) u s) <= matched)%nat.

  Lemma in_rows v t : In v (map snd (own u t)) -> In (u, v) t.
  Proof. intros I. apply in_map_iff in I as ([x y] & <- & I). apply in_own in I as (I & E). simpl in *. subst. auto. Qed.

  Lemma unit_join_bound k nulls :
    (length (own u (unit_join k on nulls s o)) <= rows_of_unit_join k own_most other_most matches matched)%nat.
  Proof.
    rewrite length_unit_join. set (l := map snd (own u s)). set (m := map snd (own u o)).
    assert (L : (length l <= own_most)%nat) by (unfold l; rewrite map_length; auto).
    assert (M : (length m <= other_most)%nat) by (unfold m; rewrite map_length; auto).
    assert (A : forall v, In v l -> (length (filter (on v) m) <= matches)%nat) by (intros; apply meets, in_rows; auto).
    assert (B : forall w, In w m -> (length (filter (fun v => on v w) l) <= matched)%nat)
      by (intros; apply is_met, in_rows; auto).
    assert (one : (forall v, length (joined k v (filter (on v) m) nulls) <= 1)%nat ->
      (total (fun v => length (joined k v (filter (on v) m) nulls)) l <= own_most)%nat).
    { intros H. etransitivity; [apply (total_at_most _ 1); auto|]. lia. }
    destruct k; unfold rows_of_unit_join; cbn [multiplies].
    - rewrite (total_ext _ (fun v => length (filter (on v) m))).
      + destruct (inner_at_most on l m own_most other_most matches matched) as (C & D); auto. apply Nat.min_glb; auto.
      + intros v _. cbn [joined]. apply map_length.
    - rewrite (total_ext _ (fun v => Nat.max 1 (length (filter (on v) m)))).
      + destruct (left_at_most on l m own_most other_most matches matched) as (C & D); auto. apply Nat.min_glb; auto.
      + intros v _. cbn [joined]. destruct (filter (on v) m); cbn [map length]; rewrite ?map_length; lia.
    - apply one. intros v. apply (joined_at_most Semi).
    - apply one. intros v. apply (joined_at_most Anti).
    - apply one. intros v. apply (joined_at_most Mark).
  Qed.

  Lemma full_join_bound nulls other_nulls :
    (length (own u (unit_join Left on nulls s o ++ alone on other_nulls s o))
     <= rows_of_full_join own_most other_most matches matched)%nat.
  Proof.
    rewrite own_app, app_length, length_unit_join, length_alone. set (l := map snd (own u s)). set (m := map snd (own u o)).
    rewrite (total_ext (fun v => length (joined Left v (filter (on v) m) nulls))
                       (fun v => Nat.max 1 (length (filter (on v) m)))).
    - apply full_at_most.
      + unfold l; rewrite map_length; auto.
      + unfold m; rewrite map_length; auto.
      + intros; apply meets, in_rows; auto.
      + intros; apply is_met, in_rows; auto.
    - intros v _. cbn [joined]. destruct (filter (on v) m); cbn [map length]; rewrite ?map_length; lia.
  Qed.
End TwoSides.

Theorem at_most_rows_per_unit : forall r u d, sound r -> (length (own u (rows r d)) <= rows_per_unit r)%nat.
Proof.
  intros r u d. induction r; cbn [sound rows rows_per_unit]; intros S.
  - apply unit_by_unit_at_most. intros l _. apply firstn_le_length.
  - rewrite <- (Nat.mul_1_r (rows_per_unit r)). apply row_by_row_bound; auto.
    intros v. destruct (condition v); simpl; lia.
  - rewrite <- (Nat.mul_1_r (rows_per_unit r)). apply row_by_row_bound; auto.
  - apply row_by_row_bound; auto. intros v. etransitivity; [apply joined_at_most|].
    destruct (multiplies k); auto. apply Nat.max_le_compat_l, matches_at_most.
  - destruct S as (S1 & S2 & M & N). apply unit_join_bound; auto.
  - destruct S as (S1 & S2 & M & N). apply full_join_bound; auto.
  - destruct S as (S1 & S2). rewrite own_app, app_length. apply Nat.add_le_mono; auto.
  - unfold own at 1. rewrite filter_nodup. etransitivity; [apply nodup_at_most|].
    rewrite <- (Nat.mul_1_r (rows_per_unit r)). apply row_by_row_bound; auto.
  - apply unit_by_unit_at_most. auto.
  - apply unit_by_unit_at_most. intros l E. etransitivity; [apply grouped_at_most|]. rewrite E. auto.
  - apply unit_by_unit_at_most. intros l E. apply Nat.min_glb.
    + etransitivity; [apply grouped_at_most|]. etransitivity; [apply filter_at_most|]. rewrite E. auto.
    + unfold grouped. rewrite map_length. apply first_groups_at_most.
  - apply unit_by_unit_at_most. intros l E. apply Nat.min_glb; [apply firstn_le_length|].
    rewrite firstn_length. transitivity (length (sort (hash u) l)); [lia|].
    rewrite (Permutation_length (sort_permutation (hash u) l)), E. auto.
  - apply unit_by_unit_at_most. intros l E. etransitivity; [apply filter_at_most|]. rewrite E. auto.
  - apply unit_by_unit_at_most. intros l E. rewrite map_length, E. auto.
Qed.

(** A unit's rows after a limit on groups are in at most so many groups. *)
Theorem at_most_groups : forall most hash group s u d,
  (length (nodup values_eq_dec (map (fun r => group (snd r)) (own u (rows (FirstGroups most hash group s) d)))) <= most)%nat.
Proof.
  intros. cbn [rows]. rewrite own_unit_by_unit. destruct (in_dec Z.eq_dec u _); simpl; [|lia].
  rewrite map_map. simpl. apply first_groups_at_most.
Qed.

(** The rows of a GROUP BY differ in their group, so that a join on the group meets at most one of them. *)
Theorem groups_tell_apart : forall width group aggregate s u d w,
  (forall v, length (group v) = width) ->
  (length (partners (fun v => equals w (firstn width v)) u (rows (OneForEachGroup group aggregate s) d)) <= 1)%nat.
Proof.
  intros width group aggregate s u d w W. unfold partners. cbn [rows]. rewrite own_unit_by_unit.
  destruct (in_dec Z.eq_dec u _); simpl; [|lia]. rewrite map_map, map_id. simpl. unfold grouped.
  set (l := map snd _). assert (D : NoDup (nodup values_eq_dec (map group l))) by apply NoDup_nodup.
  assert (G : forall g, In g (nodup values_eq_dec (map group l)) -> length g = width).
  { intros g I. apply nodup_In, in_map_iff in I as (v & <- & _). auto. }
  assert (F : forall g a : values, length g = width -> firstn width (g ++ a) = g).
  { intros g a <-. rewrite firstn_app, firstn_all, Nat.sub_diag. simpl. apply app_nil_r. }
  revert D G. generalize (nodup values_eq_dec (map group l)) as gs. induction gs as [|g gs IH]; simpl; intros D G; [lia|].
  inversion D as [|? ? N D']; subst. rewrite F by auto. destruct (equals w g) eqn:E; auto.
  rewrite (filter_none (fun v => equals w (firstn width v))); [simpl; lia|]. intros v I.
  apply in_map_iff in I as (h & <- & I). rewrite F by auto.
  unfold equals in *. destruct (values_eq_dec w g); [|rewrite andb_false_r in E; discriminate].
  destruct (values_eq_dec w h); [congruence|]. apply andb_false_r.
Qed.

(** * Neighbours *)

(** Two databases that differ in the rows of one unit. *)
Definition same_but (u : Z) (d d' : database) : Prop := forall n, Permutation (others u (d n)) (others u (d' n)).

(** One of them has none of that unit. *)
Definition added (u : Z) (d d' : database) : Prop := same_but u d d' /\ forall n, own u (d n) = [].

(** Two tables whose rows differ in at most [k] rows of a unit on either side. *)
Definition apart (u : Z) (k : nat) (t t' : table) : Prop :=
  Permutation (others u t) (others u t') /\ (length (own u t) <= k)%nat /\ (length (own u t') <= k)%nat.

Theorem rows_of_neighbours : forall r u d d',
  sound r -> same_but u d d' -> apart u (rows_per_unit r) (rows r d) (rows r d').
Proof.
  intros r u d d' S H. split; [|split; apply at_most_rows_per_unit; auto].
  apply others_by_unit. intros v N. rewrite !unit_local. apply bag_of_rows. intros n. unfold own_data.
  rewrite <- (own_others u v (d n)), <- (own_others u v (d' n)) by auto. apply own_permutation, H.
Qed.

Theorem rows_of_an_added_unit : forall r u d d',
  sound r -> added u d d' -> apart u (rows_per_unit r) (rows r d) (rows r d') /\ own u (rows r d) = [].
Proof.
  intros r u d d' S (H & E). split; [apply rows_of_neighbours; auto|].
  rewrite unit_local.
  assert (Z : Permutation (rows r (own_data u d)) (rows r (fun _ => []))).
  { apply bag_of_rows. intros n. unfold own_data. rewrite E. auto. }
  assert (Y : rows r (fun _ => []) = []).
  { clear. induction r; simpl; auto; rewrite ?IHr, ?IHr1, ?IHr2; auto. }
  rewrite Y in Z. apply Permutation_sym, Permutation_nil in Z. auto.
Qed.
