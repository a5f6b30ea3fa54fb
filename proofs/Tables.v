(** Tables: bags of rows that carry their unit, and orders that decide which rows of a unit are first.

    A table is a list of rows. Its order means nothing: what is proven holds for every permutation. *)

From Coq Require Import List ZArith Lia Permutation Bool Arith.
Import ListNotations.
Open Scope Z_scope.

Notation value := (option Z). (* None is NULL *)
Notation values := (list value).
Notation row := (Z * values)%type. (* the unit, and what the columns hold *)
Notation table := (list row).

Definition own (u : Z) (t : table) : table := filter (fun r => fst r =? u) t.
Definition others (u : Z) (t : table) : table := filter (fun r => negb (fst r =? u)) t.
Definition units (t : table) : list Z := nodup Z.eq_dec (map fst t).

Definition values_eq_dec : forall a b : values, {a = b} + {a <> b}.
Proof. repeat decide equality. Defined.

Definition row_eq_dec : forall a b : row, {a = b} + {a <> b}.
Proof. repeat decide equality. Defined.

(** * Lists *)

Lemma filter_permutation {A} (p : A -> bool) l l' : Permutation l l' -> Permutation (filter p l) (filter p l').
Proof.
  induction 1; simpl; auto.
  - destruct (p x); auto.
  - destruct (p x), (p y); auto. apply perm_swap.
  - eauto using Permutation_trans.
Qed.

Lemma filter_filter {A} (p q : A -> bool) l : filter p (filter q l) = filter (fun x => q x && p x) l.
Proof. induction l as [|x l IH]; simpl; auto. destruct (q x); simpl; rewrite IH; destruct (p x); auto. Qed.

Lemma filter_all {A} (p : A -> bool) l : (forall x, In x l -> p x = true) -> filter p l = l.
Proof.
  induction l as [|x l IH]; simpl; intros H; auto.
  rewrite (H x) by auto. f_equal. apply IH. auto.
Qed.

Lemma filter_none {A} (p : A -> bool) l : (forall x, In x l -> p x = false) -> filter p l = [].
Proof.
  induction l as [|x l IH]; simpl; intros H; auto.
  rewrite (H x) by auto. apply IH. auto.
Qed.

Lemma filter_at_most {A} (p : A -> bool) l : (length (filter p l) <= length l)%nat.
Proof. induction l as [|x l IH]; simpl; auto. destruct (p x); simpl; lia. Qed.

Lemma filter_weaker {A} (p q : A -> bool) l :
  (forall x, p x = true -> q x = true) -> (length (filter p l) <= length (filter q l))%nat.
Proof.
  intros H. induction l as [|x l IH]; simpl; auto.
  specialize (H x). destruct (p x), (q x); simpl; try lia; discriminate (H eq_refl).
Qed.

Lemma filter_flat_map {A B} (p : B -> bool) (f : A -> list B) l :
  filter p (flat_map f l) = flat_map (fun x => filter p (f x)) l.
Proof. induction l as [|x l IH]; simpl; auto. rewrite filter_app, IH. auto. Qed.

Lemma filter_of_flat_map {A B} (p : B -> bool) (q : A -> bool) (f : A -> list B) l :
  (forall x y, In y (f x) -> p y = q x) -> filter p (flat_map f l) = flat_map f (filter q l).
Proof.
  intros H. rewrite filter_flat_map. induction l as [|x l IH]; simpl; auto.
  destruct (q x) eqn:Q; simpl; rewrite IH.
  - rewrite filter_all; auto. intros y I. rewrite (H x y I). auto.
  - rewrite filter_none; auto. intros y I. rewrite (H x y I). auto.
Qed.

Lemma flat_map_of_permutations {A B} (f g : A -> list B) l l' :
  Permutation l l' -> (forall x, Permutation (f x) (g x)) -> Permutation (flat_map f l) (flat_map g l').
Proof.
  intros P H. induction P; simpl; auto.
  - apply Permutation_app; auto.
  - assert (E : Permutation (flat_map f l) (flat_map g l)).
    { induction l; simpl; auto. apply Permutation_app; auto. }
    rewrite (H x), (H y), E, !app_assoc. apply Permutation_app_tail. apply Permutation_app_comm.
  - etransitivity; [exact IHP1|]. clear - IHP2 H P2.
    assert (E : forall m, Permutation (flat_map g m) (flat_map f m)).
    { induction m; simpl; auto. apply Permutation_app; auto. symmetry. apply H. }
    rewrite E. exact IHP2.
Qed.

Lemma flat_map_at_most {A B} (f : A -> list B) k l :
  (forall x, In x l -> (length (f x) <= k)%nat) -> (length (flat_map f l) <= length l * k)%nat.
Proof.
  induction l as [|x l IH]; simpl; intros H; auto.
  rewrite app_length. specialize (H x) as Hx. pose proof (IH (fun y I => H y (or_intror I))).
  pose proof (Hx (or_introl eq_refl)). lia.
Qed.

Lemma nodup_permutation {A} (d : forall a b : A, {a = b} + {a <> b}) l l' :
  Permutation l l' -> Permutation (nodup d l) (nodup d l').
Proof.
  intros P. apply NoDup_Permutation; try apply NoDup_nodup.
  intros x. rewrite !nodup_In. split; apply Permutation_in; auto. symmetry. auto.
Qed.

Lemma filter_nodup {A} (d : forall a b : A, {a = b} + {a <> b}) p l : filter p (nodup d l) = nodup d (filter p l).
Proof.
  induction l as [|x l IH]; simpl; auto.
  destruct (in_dec d x l) as [I|I], (p x) eqn:P; simpl; rewrite ?P, ?IH; auto.
  - destruct (in_dec d x (filter p l)) as [|N]; auto. destruct N. apply filter_In. auto.
  - destruct (in_dec d x (filter p l)) as [J|]; auto. apply filter_In in J. tauto.
Qed.

Lemma nodup_at_most {A} (d : forall a b : A, {a = b} + {a <> b}) l : (length (nodup d l) <= length l)%nat.
Proof. induction l as [|x l IH]; simpl; auto. destruct (in_dec d x l); simpl; lia. Qed.

(** * The rows of a unit *)

Lemma own_app u a b : own u (a ++ b) = own u a ++ own u b.
Proof. apply filter_app. Qed.

Lemma own_own u t : own u (own u t) = own u t.
Proof. unfold own. rewrite filter_filter. apply filter_ext. intros r. destruct (fst r =? u); auto. Qed.

Lemma own_others u v t : v <> u -> own v (others u t) = own v t.
Proof.
  intros N. unfold own, others. rewrite filter_filter. apply filter_ext. intros r.
  destruct (Z.eqb_spec (fst r) u), (Z.eqb_spec (fst r) v); simpl; auto. congruence.
Qed.

Lemma others_own u t : own u (others u t) = [].
Proof.
  unfold own, others. rewrite filter_filter. apply filter_none. intros r _. destruct (fst r =? u); auto.
Qed.

Lemma in_own u r t : In r (own u t) <-> In r t /\ fst r = u.
Proof. unfold own. rewrite filter_In, Z.eqb_eq. tauto. Qed.

Lemma own_permutation u t t' : Permutation t t' -> Permutation (own u t) (own u t').
Proof. apply filter_permutation. Qed.

Lemma split_by_unit u t : Permutation t (others u t ++ own u t).
Proof.
  induction t as [|r t IH]; simpl; auto.
  destruct (fst r =? u); simpl.
  - transitivity (r :: others u t ++ own u t); auto. apply Permutation_middle.
  - auto.
Qed.

(** Two tables with the same rows of every unit but [u] have the same rows of others. *)
Lemma others_by_unit u t t' :
  (forall v, v <> u -> Permutation (own v t) (own v t')) -> Permutation (others u t) (others u t').
Proof.
  intros H. apply (Permutation_count_occ row_eq_dec). intros r.
  assert (C : forall s, count_occ row_eq_dec (others u s) r
                        = if fst r =? u then 0%nat else count_occ row_eq_dec (own (fst r) s) r).
  { intros s. induction s as [|x s IH]; simpl.
    - destruct (fst r =? u); auto.
    - destruct (Z.eqb_spec (fst x) u) as [E|E]; simpl; rewrite ?IH.
      + destruct (Z.eqb_spec (fst r) u) as [F|F]; auto.
        destruct (Z.eqb_spec (fst x) (fst r)); auto. congruence.
      + destruct (Z.eqb_spec (fst r) u) as [F|F].
        * destruct (row_eq_dec x r); subst; auto. congruence.
        * destruct (Z.eqb_spec (fst x) (fst r)) as [G|G]; simpl.
          -- destruct (row_eq_dec x r); auto.
          -- destruct (row_eq_dec x r); subst; auto. congruence. }
  rewrite !C. destruct (Z.eqb_spec (fst r) u) as [E|E]; auto.
  apply Permutation_count_occ. auto.
Qed.

(** * An order of values, in which ties are equal in all values *)

Definition compare_value (a b : value) : comparison :=
  match a, b with
  | None, None => Eq
  | None, Some _ => Lt
  | Some _, None => Gt
  | Some x, Some y => Z.compare x y
  end.

Fixpoint compare (a b : values) : comparison :=
  match a, b with
  | [], [] => Eq
  | [], _ => Lt
  | _, [] => Gt
  | x :: a, y :: b => match compare_value x y with Eq => compare a b | c => c end
  end.

Lemma compare_value_eq a b : compare_value a b = Eq <-> a = b.
Proof.
  destruct a, b; simpl; split; intros H; try discriminate; auto.
  - apply Z.compare_eq_iff in H. congruence.
  - inversion H. apply Z.compare_refl.
Qed.

Lemma compare_value_opp a b : compare_value b a = CompOpp (compare_value a b).
Proof. destruct a, b; simpl; auto. apply Z.compare_antisym. Qed.

Lemma compare_value_trans a b c : compare_value a b = Lt -> compare_value b c = Lt -> compare_value a c = Lt.
Proof. destruct a, b, c; simpl; intros; try discriminate; auto. rewrite Z.compare_lt_iff in *. lia. Qed.

Lemma compare_eq a : forall b, compare a b = Eq <-> a = b.
Proof.
  induction a as [|x a IH]; intros [|y b]; simpl; split; intros H; try discriminate; auto.
  - destruct (compare_value x y) eqn:E; try discriminate. apply compare_value_eq in E. apply IH in H. congruence.
  - inversion H; subst. rewrite (proj2 (compare_value_eq y y) eq_refl). apply IH. auto.
Qed.

Lemma compare_opp a : forall b, compare b a = CompOpp (compare a b).
Proof.
  induction a as [|x a IH]; intros [|y b]; simpl; auto.
  rewrite compare_value_opp. destruct (compare_value x y); simpl; auto.
Qed.

Lemma compare_trans a : forall b c, compare a b = Lt -> compare b c = Lt -> compare a c = Lt.
Proof.
  induction a as [|x a IH]; intros [|y b] [|z c]; simpl; intros H K; try discriminate; auto.
  destruct (compare_value x y) eqn:E, (compare_value y z) eqn:F; try discriminate.
  - apply compare_value_eq in E, F. subst. rewrite (proj2 (compare_value_eq z z) eq_refl). eauto.
  - apply compare_value_eq in E. subst. rewrite F. auto.
  - apply compare_value_eq in F. subst. rewrite E. auto.
  - rewrite (compare_value_trans _ _ _ E F). auto.
Qed.

(** The order by which rows are chosen: by a hash first, then by all values. *)
Definition before (hash : values -> values) (a b : values) : bool :=
  match compare (hash a) (hash b) with
  | Lt => true
  | Gt => false
  | Eq => match compare a b with Gt => false | _ => true end
  end.

Lemma before_total h a b : before h a b = true \/ before h b a = true.
Proof.
  unfold before. rewrite (compare_opp (h a) (h b)), (compare_opp a b).
  destruct (compare (h a) (h b)), (compare a b); simpl; auto.
Qed.

Lemma before_antisymmetric h a b : before h a b = true -> before h b a = true -> a = b.
Proof.
  unfold before. rewrite (compare_opp (h a) (h b)), (compare_opp a b).
  destruct (compare (h a) (h b)), (compare a b) eqn:E; simpl; intros; try discriminate; apply compare_eq; auto.
Qed.

Lemma before_transitive h a b c : before h a b = true -> before h b c = true -> before h a c = true.
Proof.
  unfold before. intros H K.
  destruct (compare (h a) (h b)) eqn:E, (compare (h b) (h c)) eqn:F; try discriminate.
  - apply compare_eq in E, F. rewrite E, F, (proj2 (compare_eq (h c) (h c)) eq_refl).
    destruct (compare a b) eqn:G; try discriminate; destruct (compare b c) eqn:I; try discriminate.
    + apply compare_eq in G, I. subst. rewrite (proj2 (compare_eq c c) eq_refl). auto.
    + apply compare_eq in G. subst. rewrite I. auto.
    + apply compare_eq in I. subst. rewrite G. auto.
    + rewrite (compare_trans _ _ _ G I). auto.
  - apply compare_eq in E. rewrite E, F. auto.
  - apply compare_eq in F. rewrite <- F, E. auto.
  - rewrite (compare_trans _ _ _ E F). auto.
Qed.

Fixpoint insert (h : values -> values) (a : values) (l : list values) : list values :=
  match l with
  | [] => [a]
  | b :: l => if before h a b then a :: b :: l else b :: insert h a l
  end.

Definition sort (h : values -> values) (l : list values) : list values := fold_right (insert h) [] l.

Lemma insert_permutation h a l : Permutation (insert h a l) (a :: l).
Proof.
  induction l as [|b l IH]; simpl; auto. destruct (before h a b); auto.
  rewrite IH. apply perm_swap.
Qed.

Lemma sort_permutation h l : Permutation (sort h l) l.
Proof. induction l as [|a l IH]; simpl; auto. rewrite insert_permutation. auto. Qed.

Lemma insert_commutes h a b l : insert h a (insert h b l) = insert h b (insert h a l).
Proof.
  assert (S : forall l', before h a b = true -> before h b a = true -> insert h a l' = insert h b l').
  { intros l' X Y. rewrite (before_antisymmetric _ _ _ X Y). auto. }
  induction l as [|c l IH]; simpl.
  - destruct (before h a b) eqn:X, (before h b a) eqn:Y; auto.
    + rewrite (before_antisymmetric _ _ _ X Y). auto.
    + destruct (before_total h a b); congruence.
  - destruct (before h b c) eqn:B, (before h a c) eqn:A; simpl.
    + destruct (before h a b) eqn:X, (before h b a) eqn:Y; rewrite ?A, ?B; auto.
      * rewrite (before_antisymmetric _ _ _ X Y). auto.
      * destruct (before_total h a b); congruence.
    + destruct (before h a b) eqn:X; rewrite ?A, ?B; auto.
      rewrite (before_transitive _ _ _ _ X B) in A. discriminate.
    + destruct (before h b a) eqn:Y; rewrite ?A, ?B; auto.
      rewrite (before_transitive _ _ _ _ Y A) in B. discriminate.
    + rewrite A, B, IH. auto.
Qed.

(** What comes first does not depend on the order of a table. *)
Lemma sort_unique h l l' : Permutation l l' -> sort h l = sort h l'.
Proof.
  induction 1; simpl; auto; try congruence. apply insert_commutes.
Qed.
