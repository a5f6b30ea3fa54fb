(** The ledger as a state machine, and as a durable log that processes share: [ledger.transitions], [ledger.transaction],
    [ledger.group_commit] and the chains of [ledger.sqlite] and [ledger.postgres].

    Amounts are whole steps of the grid to which each charge is rounded up. The n-th entry of a log has the number n.

    The theorems are [never_overspent], [what_ran_was_paid], [what_is_shown_was_charged] and [charges_wait]. *)

From Coq Require Import List NArith Lia Permutation Bool Arith.
Import ListNotations.
Open Scope N_scope.

Inductive cause := Fault | Death | Interrupt | Stop.

Inductive entry :=
  | Open (budget delta_keys : N)
  | Data (version : N)
  | Charge (version amount delta : N) (asker : option nat)
  | Answer (charge : nat)
  | Unanswered (charges : list nat) (why : cause)
  | Resume (faults : N)
  | Raise (was now : N)
  | Close
  | Restored (entries : nat) (lost : bool).

Notation log := (list entry).

Record state := State {
  sequence : nat;
  version : N;
  budget : N;
  spent : N;
  delta_keys : N;
  delta_spent : N;
  faults : N;
  closed : bool;
  under_way : list (nat * nat) (* charges, each with its asker *)
}.

Definition faults_allowed : N := 3.
Definition stopped (s : state) : bool := faults_allowed <=? faults s.
Definition counted (c : cause) : N := match c with Fault | Death => 1 | Interrupt | Stop => 0 end.

Definition is_under_way (s : state) (n : nat) : bool := existsb (fun p => Nat.eqb (fst p) n) (under_way s).
Definition ended (s : state) (ns : list nat) : list (nat * nat) :=
  filter (fun p => negb (existsb (Nat.eqb (fst p)) ns)) (under_way s).
Definition different (ns : list nat) : bool := Nat.eqb (length (nodup Nat.eq_dec ns)) (length ns).

(** A loss and its delta are paid together, or neither is. *)
Definition fits (s : state) (amount delta : N) : bool :=
  (spent s + amount <=? budget s) && (delta_spent s + delta <=? delta_keys s).

Definition opened (e : entry) : option state :=
  match e with Open b d => Some (State 1 0 b 0 d 0 0 false []) | _ => None end.

(** The state after one more entry; None if it cannot follow. *)
Definition fold (s : state) (e : entry) : option state :=
  let '(State n v b x d y f c u) := s in
  let n := S n in
  match e with
  | Open _ _ => None
  | Data w => if (w =? v + 1) && negb c then Some (State n w b x d y f c u) else None
  | Charge w a e asker =>
      if (w =? v) && negb (stopped s) && negb c && fits s a e then
        Some (State n v b (x + a) d (y + e) f c (match asker with Some k => u ++ [(n, k)] | None => u end))
      else None
  | Answer m => if Nat.ltb 1 m && Nat.ltb m n then Some (State n v b x d y f c (ended s [m])) else None
  | Unanswered ms why =>
      if different ms && forallb (is_under_way s) ms && (match why with Stop => stopped s | _ => true end) then
        Some (State n v b x d y (f + counted why) c (ended s ms))
      else None
  | Resume k => if k =? f then Some (State n v b x d y 0 c u) else None
  | Raise was now => if (was =? b) && (b <=? now) && negb c then Some (State n v now x d y f c u) else None
  | Close => if c then None else Some (State n v b x d y f true u)
  | Restored k lost =>
      if Nat.eqb (S k) n then Some (if lost then State n v b b d d f c u else State n v b x d y f c u) else None
  end.

Fixpoint fold_all (s : state) (l : log) : option state :=
  match l with [] => Some s | e :: l => match fold s e with Some s => fold_all s l | None => None end end.

Definition replay (l : log) : option state :=
  match l with [] => None | e :: l => match opened e with Some s => fold_all s l | None => None end end.

(** * What a request adds *)

Inductive outcome := Appends (e : entry) | Refuses | Raises.

Definition charging (s : state) (w amount delta : N) (asker : option nat) : outcome :=
  if closed s then Raises
  else if stopped s then Raises
  else if version s =? 0 then Raises
  else if negb (w =? version s) then Raises
  else if fits s amount delta then Appends (Charge w amount delta asker)
  else Refuses.

Definition answering (s : state) (n : nat) : outcome := if stopped s then Raises else Appends (Answer n).

Definition leaving (s : state) (ns : list nat) (why : cause) : option entry :=
  match filter (is_under_way s) ns with
  | [] => None
  | open => Some (Unanswered open (if stopped s then Stop else why))
  end.

(** * Sums *)

Definition amount_of (e : entry) : N := match e with Charge _ a _ _ => a | _ => 0 end.
Definition delta_of (e : entry) : N := match e with Charge _ _ d _ => d | _ => 0 end.
Definition is_charge (e : entry) : bool := match e with Charge _ _ _ _ => true | _ => false end.

Fixpoint total (f : entry -> N) (l : log) : N := match l with [] => 0 | e :: l => f e + total f l end.

(** The entry with a number: they begin at 1. *)
Definition entry_at (l : log) (n : nat) : option entry := match n with O => None | S n => nth_error l n end.

Fixpoint total_at (f : entry -> N) (l : log) (ns : list nat) : N :=
  match ns with
  | [] => 0
  | n :: ns => match entry_at l n with Some e => f e | None => 0 end + total_at f l ns
  end.

Lemma total_app f a b : total f (a ++ b) = total f a + total f b.
Proof. induction a; simpl; lia. Qed.

(** * One log *)

Lemma fold_grows s e s' : fold s e = Some s' ->
  sequence s' = S (sequence s) /\ budget s <= budget s' /\ delta_keys s' = delta_keys s /\
  (spent s <= budget s -> spent s + amount_of e <= spent s' /\ spent s' <= budget s') /\
  (delta_spent s <= delta_keys s -> delta_spent s + delta_of e <= delta_spent s' /\ delta_spent s' <= delta_keys s').
Proof.
  destruct s as [n v b x d y f c u]. unfold fold, fits. cbn [spent budget delta_spent delta_keys].
  destruct e; intros H; try discriminate;
    repeat match type of H with
           | (if ?p then _ else _) = Some _ => destruct p eqn:?; try discriminate
           | Some (if ?p then _ else _) = Some _ => destruct p eqn:?
           end;
    inversion H; subst; clear H; cbn [sequence spent budget delta_spent delta_keys amount_of delta_of];
    repeat match goal with
           | K : _ && _ = true |- _ => apply andb_prop in K as (? & ?)
           | K : (_ <=? _) = true |- _ => apply N.leb_le in K
           | K : (_ =? _) = true |- _ => apply N.eqb_eq in K
           end; subst; repeat split; intros; try lia.
Qed.

Lemma fold_all_app s a b : fold_all s (a ++ b) = match fold_all s a with Some s => fold_all s b | None => None end.
Proof. revert s. induction a as [|e a IH]; intros s; simpl; auto. destruct (fold s e); auto. Qed.

Lemma replay_app a b s : replay a = Some s -> replay (a ++ b) = fold_all s b.
Proof.
  destruct a as [|e a]; simpl; intros H; [discriminate|]. destruct (opened e); [|discriminate].
  rewrite fold_all_app, H. auto.
Qed.

Lemma fold_all_grows l : forall s s', fold_all s l = Some s' -> spent s <= budget s -> delta_spent s <= delta_keys s ->
  sequence s' = (sequence s + length l)%nat /\ budget s <= budget s' /\
  spent s + total amount_of l <= spent s' /\ spent s' <= budget s' /\
  delta_keys s' = delta_keys s /\ delta_spent s + total delta_of l <= delta_spent s' /\ delta_spent s' <= delta_keys s'.
Proof.
  induction l as [|e l IH]; simpl; intros s s' H A B.
  - inversion H; subst. repeat split; lia.
  - destruct (fold s e) as [t|] eqn:E; [|discriminate]. apply fold_grows in E as (P & Q & R & S & T).
    destruct (S A) as (S1 & S2), (T B) as (T1 & T2). destruct (IH t s' H) as (I & J & K & L & M & N & O); auto.
    repeat split; lia.
Qed.

(** A log that replays has charged no more than its budget, and of delta no more than is reserved. *)
Theorem never_overspent : forall l s, replay l = Some s ->
  total amount_of l <= spent s /\ spent s <= budget s /\
  total delta_of l <= delta_spent s /\ delta_spent s <= delta_keys s /\ sequence s = length l.
Proof.
  intros [|e l] s H; simpl in H; [discriminate|]. destruct e; simpl in H; try discriminate.
  apply fold_all_grows in H as (A & B & C & D & E & F & G); simpl in *; try lia.
Qed.

(** Every beginning of a log that replays does so too, with a budget that is no larger. *)
Theorem beginnings_replay : forall n l s, (0 < n)%nat -> replay l = Some s ->
  exists s', replay (firstn n l) = Some s' /\ budget s' <= budget s.
Proof.
  intros n [|e l] s L H; simpl in H; [discriminate|]. destruct n as [|n]; [lia|]. cbn [firstn replay].
  destruct e; simpl in H; try discriminate. simpl.
  rewrite <- (firstn_skipn n l), fold_all_app in H. destruct (fold_all _ (firstn n l)) as [t|] eqn:E; [|discriminate].
  exists t. split; auto. apply fold_all_grows in E as (_ & _ & _ & A & _ & _ & B); simpl; try lia.
  apply fold_all_grows in H; auto. lia.
Qed.

(** No charge follows while faults stop the data set, or after it was closed. *)
Theorem charges_wait : forall s w a d k s',
  fold s (Charge w a d k) = Some s' -> stopped s = false /\ closed s = false /\ w = version s /\ fits s a d = true.
Proof.
  intros [n v b x dk y f c u] w a d k s'. unfold fold. cbn [closed version].
  destruct (w =? v) eqn:W, (stopped (State n v b x dk y f c u)) eqn:P, c, (fits (State n v b x dk y f _ u) a d) eqn:F;
    simpl; intros H; try discriminate.
  apply N.eqb_eq in W. subst. auto.
Qed.

(** What a request adds can always follow. *)
Theorem charging_follows : forall s w a d k e, charging s w a d k = Appends e -> exists s', fold s e = Some s'.
Proof.
  intros s w a d k e. unfold charging.
  destruct (closed s) eqn:C, (stopped s) eqn:P, (version s =? 0), (w =? version s) eqn:W, (fits s a d) eqn:F;
    simpl; intros H; try discriminate. inversion H; subst.
  destruct s as [n v b x dk y f c u]. cbn [closed version] in *. subst. unfold fold. rewrite W, P, F. simpl. eauto.
Qed.

Theorem leaving_follows : forall s ns why e,
  NoDup ns -> (why = Stop -> stopped s = true) -> leaving s ns why = Some e -> exists s', fold s e = Some s'.
Proof.
  intros s ns why e D W. unfold leaving. set (m := filter (is_under_way s) ns). intros H.
  assert (E : e = Unanswered m (if stopped s then Stop else why)) by (destruct m; [discriminate|inversion H; auto]).
  rewrite E.
  assert (A : different m = true).
  { unfold different. apply Nat.eqb_eq. rewrite (nodup_fixed_point Nat.eq_dec); auto. apply NoDup_filter. auto. }
  assert (B : forallb (is_under_way s) m = true).
  { apply forallb_forall. intros n I. apply filter_In in I. tauto. }
  assert (C : match (if stopped s then Stop else why) with Stop => stopped s | _ => true end = true).
  { destruct (stopped s) eqn:P; auto. destruct why; auto. }
  destruct s as [n v b x dk y f c u]. unfold fold. rewrite A, B, C. simpl. eauto.
Qed.

(** * Processes, commits, crashes *)

Record process := Process {
  cache : option (nat * state); (* how many entries it has folded, and what they add up to *)
  issued : list nat (* charges that it was told of, and of which nothing was run yet *)
}.

Definition dead : process := Process None [].

Record world := World {
  disk : log; (* what a restart finds *)
  durable : nat; (* so many of these entries survive a power failure: somebody was told of them, or has read them *)
  processes : nat -> process;
  holder : option (nat * state * log); (* who holds the ledger: the state after what it has appended, and that *)
  ran : list nat; (* charges for which a mechanism read data *)
  shown : list nat (* charges whose answers somebody has seen *)
}.

Definition with_process (ps : nat -> process) (p : nat) (now : process) : nat -> process :=
  fun q => if Nat.eqb q p then now else ps q.

(** What an open ledger does to come to the newest entry: it folds those that it has not seen. *)
Definition caught_up (c : option (nat * state)) (l : log) : option state :=
  match c with None => replay l | Some (n, s) => fold_all s (skipn n l) end.

(** The numbers of the charges among entries that begin after [n]. *)
Fixpoint charges_after (n : nat) (l : log) : list nat :=
  match l with [] => [] | e :: l => (if is_charge e then [S n] else []) ++ charges_after (S n) l end.

Inductive step : world -> world -> Prop :=
  | Registers d b k ps r w : (* the first entry of a ledger *)
      d = [] -> step (World d 0 ps None r w) (World [Open b k] 1 ps None r w)
  | Begins d n ps r w p s : (* takes the lock, and reads to the newest entry *)
      caught_up (cache (ps p)) d = Some s ->
      step (World d n ps None r w)
           (World d (length d) (with_process ps p (Process (Some (length d, s)) (issued (ps p)))) (Some (p, s, [])) r w)
  | Appends_ d n ps p s l r w e s' : (* any entry that may follow, whoever asked for it *)
      fold s e = Some s' -> step (World d n ps (Some (p, s, l)) r w) (World d n ps (Some (p, s', l ++ [e])) r w)
  | Commits d n ps p s l r w : (* all or none, and then everybody who asked is told *)
      step (World d n ps (Some (p, s, l)) r w)
           (World (d ++ l) (length (d ++ l))
              (with_process ps p (Process (Some (length (d ++ l), s)) (issued (ps p) ++ charges_after (length d) l)))
              None r w)
  | Doubts d n ps p s l r w kept : (* the commit fails: nobody knows whether it was made, and nobody is told *)
      step (World d n ps (Some (p, s, l)) r w) (World (if kept : bool then d ++ l else d) n ps None r w)
  | RollsBack d n ps p s l r w : step (World d n ps (Some (p, s, l)) r w) (World d n ps None r w)
  | Runs d n ps h r w p c : (* reads data for a charge that it was told of, and draws noise *)
      In c (issued (ps p)) ->
      step (World d n ps h r w)
           (World d n (with_process ps p (Process (cache (ps p)) (remove Nat.eq_dec c (issued (ps p))))) h (c :: r) w)
  | ShowsOwn d n ps h r w c : (* once its answer is recorded *)
      In c r -> In (Answer c) (firstn n d) -> step (World d n ps h r w) (World d n ps h r (c :: w))
  | ShowsStored d n ps h r w c e : (* an answer of before, looked up: it is free *)
      entry_at (firstn n d) c = Some e -> is_charge e = true -> In (Answer c) (firstn n d) ->
      step (World d n ps h r w) (World d n ps h r (c :: w))
  | Crashes d n ps h r w p : (* a process dies, whatever it was about to do *)
      step (World d n ps h r w)
           (World d n (with_process ps p dead)
              (match h with Some (q, _, _) => if Nat.eqb q p then None else h | None => None end) r w)
  | LosesPower d n ps h r w m : (* all processes die; of what nobody was told, any end may be lost *)
      (n <= m)%nat -> step (World d n ps h r w) (World (firstn m d) n (fun _ => dead) None r w).

Inductive reachable : world -> Prop :=
  | Starts : reachable (World [] 0 (fun _ => dead) None [] [])
  | Goes w w' : reachable w -> step w w' -> reachable w'.

(** * The invariant *)

Definition paid (l : log) (c : nat) : Prop := exists e, entry_at l c = Some e /\ is_charge e = true.

Record sound (w : world) : Prop := {
  replays : disk w <> [] -> exists s, replay (disk w) = Some s;
  survives : (durable w <= length (disk w))%nat;
  begun : disk w <> [] -> (0 < durable w)%nat;
  caches : forall p n s, cache (processes w p) = Some (n, s) -> (n <= durable w)%nat /\ replay (firstn n (disk w)) = Some s;
  held : forall p s l, holder w = Some (p, s, l) -> replay (disk w ++ l) = Some s /\ durable w = length (disk w) /\ disk w <> [];
  issued_paid : forall p c, In c (issued (processes w p)) -> paid (firstn (durable w) (disk w)) c;
  ran_paid : forall c, In c (ran w) -> paid (firstn (durable w) (disk w)) c;
  shown_paid : forall c, In c (shown w) -> paid (firstn (durable w) (disk w)) c;
  once : NoDup (ran w);
  not_twice : forall p c, In c (issued (processes w p)) -> ~ In c (ran w);
  issued_once : forall p, NoDup (issued (processes w p));
  issued_to_one : forall p q c, In c (issued (processes w p)) -> In c (issued (processes w q)) -> p = q
}.

Lemma entry_at_app a b c e : entry_at a c = Some e -> entry_at (a ++ b) c = Some e.
Proof.
  destruct c as [|c]; simpl; [discriminate|]. intros H. rewrite nth_error_app1; auto. apply nth_error_Some. congruence.
Qed.

Lemma paid_app a b c : paid a c -> paid (a ++ b) c.
Proof. intros (e & H & K). exists e. split; auto. apply entry_at_app. auto. Qed.

Lemma paid_longer n m l c : (n <= m)%nat -> paid (firstn n l) c -> paid (firstn m l) c.
Proof.
  intros L H. replace (firstn n l) with (firstn n (firstn m l)) in H by (rewrite firstn_firstn, Nat.min_l; auto).
  rewrite <- (firstn_skipn n (firstn m l)). apply paid_app. auto.
Qed.

Lemma paid_at_most n l c : paid (firstn n l) c -> (0 < c <= n)%nat.
Proof.
  intros (e & H & _). destruct c as [|c]; simpl in H; [discriminate|].
  assert (nth_error (firstn n l) c <> None) by congruence. apply nth_error_Some in H0. rewrite firstn_length in H0. lia.
Qed.

Lemma in_charges_after c l : forall n, In c (charges_after n l) ->
  (n < c)%nat /\ exists e, nth_error l (c - S n) = Some e /\ is_charge e = true.
Proof.
  induction l as [|e l IH]; simpl; intros n I; [tauto|]. apply in_app_or in I as [I|I].
  - destruct (is_charge e) eqn:E; simpl in I; [|tauto]. destruct I as [<-|[]]. split; [lia|].
    rewrite Nat.sub_diag. simpl. eauto.
  - apply IH in I as (L & x & A & B). split; [lia|]. exists x. replace (c - S n)%nat with (S (c - S (S n))) by lia. auto.
Qed.

Lemma charges_after_once l : forall n, NoDup (charges_after n l).
Proof.
  induction l as [|e l IH]; simpl; intros n; [constructor|]. destruct (is_charge e); simpl; auto.
  constructor; auto. intros I. apply in_charges_after in I. lia.
Qed.

Lemma charges_paid d l c : In c (charges_after (length d) l) -> paid (d ++ l) c /\ (length d < c)%nat.
Proof.
  intros I. apply in_charges_after in I as (L & e & A & B). split; auto. exists e. split; auto.
  destruct c as [|c]; [lia|]. simpl. rewrite nth_error_app2 by lia. rewrite <- A. auto.
Qed.

Lemma replay_snoc l e s s' : replay l = Some s -> fold s e = Some s' -> replay (l ++ [e]) = Some s'.
Proof. intros H K. rewrite (replay_app _ _ _ H). simpl. rewrite K. reflexivity. Qed.

Lemma firstn_whole {A} (l : list A) : firstn (length l) l = l.
Proof. apply firstn_all. Qed.

Lemma firstn_prefix {A} n (a b : list A) : (n <= length a)%nat -> firstn n (a ++ b) = firstn n a.
Proof. intros L. rewrite firstn_app. replace (n - length a)%nat with 0%nat by lia. simpl. apply app_nil_r. Qed.

Lemma replays_not_empty l s : replay l = Some s -> l <> [].
Proof. destruct l; [discriminate|]. intros _ H. discriminate. Qed.

Ltac of_process q p := unfold with_process in *; destruct (Nat.eqb_spec q p); subst; cbn [cache issued] in *.

Theorem always_sound : forall w, reachable w -> sound w.
Proof.
  induction 1 as [|w w' R IH S].
  { constructor; simpl; intros; try tauto; try discriminate; try lia; constructor. }
  destruct IH as [I1 I2 I3 I4 I5 I6 I7 I8 I9 I10 I11 I12].
  destruct S; cbn [disk durable processes holder ran shown] in *.
  - (* Registers *) subst. assert (N : forall c, ~ paid (firstn 0 []) c).
    { intros c (e & H & _). destruct c as [|[|c]]; discriminate. }
    constructor; cbn [disk durable processes holder ran shown]; auto; intros.
    + eexists. reflexivity.
    + destruct (I4 _ _ _ H) as (_ & F). rewrite firstn_nil in F. discriminate.
    + discriminate.
    + destruct (N c). eauto.
    + destruct (N c). eauto.
    + destruct (N c). eauto.
  - (* Begins *)
    assert (E : replay d = Some s).
    { unfold caught_up in H. destruct (cache (ps p)) as [[m t]|] eqn:C; auto.
      destruct (I4 _ _ _ C) as (_ & F). rewrite <- (firstn_skipn m d), (replay_app _ _ _ F). auto. }
    pose proof (replays_not_empty _ _ E) as NE.
    assert (L : forall c, paid (firstn n d) c -> paid (firstn (length d) d) c) by (intros c; apply paid_longer; auto).
    constructor; cbn [disk durable processes holder ran shown]; auto; intros.
    + destruct d; [congruence|]. simpl. lia.
    + of_process p0 p.
      * inversion H0; subst. rewrite firstn_whole. auto.
      * destruct (I4 _ _ _ H0). split; auto. lia.
    + inversion H0; subst. rewrite app_nil_r. auto.
    + apply L. of_process p0 p; eauto.
    + of_process p0 p; eauto.
    + of_process p0 p; eauto.
    + of_process p0 p; of_process q p; eauto.
  - (* Appends_ *)
    destruct (I5 _ _ _ eq_refl) as (E & F & NE). constructor; cbn [disk durable processes holder ran shown]; auto.
    intros p0 s0 l0 Q. inversion Q; subst. split; auto. rewrite app_assoc. eapply replay_snoc; eauto.
  - (* Commits *)
    destruct (I5 _ _ _ eq_refl) as (E & F & NE). subst n.
    assert (L : forall c, paid (firstn (length d) d) c -> paid (firstn (length (d ++ l)) (d ++ l)) c).
    { intros c P. rewrite firstn_whole in *. apply paid_app. auto. }
    assert (New : forall c, In c (charges_after (length d) l) -> paid (firstn (length (d ++ l)) (d ++ l)) c /\ (length d < c)%nat).
    { intros c P. rewrite firstn_whole. apply charges_paid. auto. }
    assert (Old : forall c, paid (firstn (length d) d) c -> (c <= length d)%nat) by (intros c P; apply paid_at_most in P; lia).
    constructor; cbn [disk durable processes holder ran shown]; auto; intros.
    + eauto.
    + rewrite app_length. destruct d; [|simpl; lia]. destruct l; [tauto|]. simpl. lia.
    + of_process p0 p.
      * inversion H; subst. rewrite firstn_whole. auto.
      * destruct (I4 _ _ _ H). rewrite app_length, firstn_prefix by lia. split; auto. lia.
    + discriminate.
    + of_process p0 p; eauto. apply in_app_or in H as [H|H]; eauto. apply New. auto.
    + of_process p0 p; eauto. apply in_app_or in H as [H|H]; eauto. intros Q.
      pose proof (Old c (I7 c Q)). apply New in H. lia.
    + of_process p0 p; eauto.
      assert (G : forall a b : list nat, NoDup a -> NoDup b -> (forall x, In x a -> ~ In x b) -> NoDup (a ++ b)).
      { induction a as [|x a IHa]; simpl; intros b Da Db X; auto. inversion Da; subst. constructor.
        - intros J. apply in_app_or in J as [J|J]; [tauto|]. apply (X x); auto.
        - apply IHa; auto. }
      apply G; auto using charges_after_once. intros x A B. pose proof (Old x (I6 p x A)). apply New in B. lia.
    + of_process p0 p; of_process q p; auto; try (apply in_app_or in H as [H|H]); try (apply in_app_or in H0 as [H0|H0]); eauto.
      * pose proof (Old c (I6 _ c H0)). apply New in H. lia.
      * pose proof (Old c (I6 _ c H)). apply New in H0. lia.
  - (* Doubts *)
    destruct (I5 _ _ _ eq_refl) as (E & F & NE). destruct kept; [|constructor; cbn [disk durable processes holder ran shown]; auto; discriminate].
    subst n. constructor; cbn [disk durable processes holder ran shown]; intros; rewrite ?firstn_prefix by lia; eauto.
    + rewrite app_length. lia.
    + destruct (I4 _ _ _ H). rewrite firstn_prefix by lia. auto.
    + discriminate.
  - (* RollsBack *) constructor; cbn [disk durable processes holder ran shown]; auto; discriminate.
  - (* Runs *)
    constructor; cbn [disk durable processes holder ran shown]; auto; intros.
    + of_process p0 p; eauto.
    + of_process p0 p; eauto. apply in_remove in H0 as (H0 & _). eauto.
    + destruct H0 as [<-|H0]; eauto.
    + constructor; auto. eauto.
    + intros [<-|Q].
      * of_process p0 p; [apply in_remove in H0; tauto|]. eauto.
      * of_process p0 p; [apply in_remove in H0 as (H0 & _)|]; eapply I10; eauto.
    + of_process p0 p; eauto. 
      assert (G : forall l, NoDup l -> NoDup (remove Nat.eq_dec c l)).
      { clear. induction l as [|x l IHl]; simpl; intros D; auto. inversion D; subst. destruct (Nat.eq_dec c x); auto.
        constructor; auto. intros J. apply in_remove in J. tauto. }
      auto.
    + of_process p0 p; of_process q p; auto; try (apply in_remove in H0 as (H0 & _)); try (apply in_remove in H1 as (H1 & _)); eauto.
  - (* ShowsOwn *)
    constructor; cbn [disk durable processes holder ran shown]; auto. intros x [<-|Q]; auto.
  - (* ShowsStored *)
    constructor; cbn [disk durable processes holder ran shown]; auto. intros x [<-|Q]; auto. exists e. auto.
  - (* Crashes *)
    constructor; cbn [disk durable processes holder ran shown]; auto; intros.
    + of_process p0 p; [discriminate|]. eauto.
    + destruct h as [[[q t] l']|]; [|discriminate]. destruct (Nat.eqb q p); [discriminate|]. eauto.
    + of_process p0 p; [destruct H|]. eauto.
    + of_process p0 p; [destruct H|]. eauto.
    + of_process p0 p; [constructor|]. auto.
    + of_process p0 p; of_process q p; try (destruct H; fail); try (destruct H0; fail); eauto.
  - (* LosesPower *)
    constructor; cbn [disk durable processes holder ran shown]; auto; intros; rewrite ?firstn_firstn, ?Nat.min_l by lia; auto;
      try discriminate; try (destruct H0; fail).
    + destruct d as [|e d]; [rewrite firstn_nil in H0; congruence|].
      destruct (I1 ltac:(discriminate)) as (s & E). destruct (beginnings_replay m (e :: d) s) as (t & A & _); eauto.
      assert (0 < n)%nat by (apply I3; discriminate). lia.
    + rewrite firstn_length. lia.
    + apply I3. intros ->. rewrite firstn_nil in H0. congruence.
    + constructor.
Qed.

(** * What it means *)

Lemma remove_once x l : NoDup l -> NoDup (remove Nat.eq_dec x l).
Proof.
  induction l as [|y l IH]; intros D; auto. inversion D; subst. cbn [remove]. destruct (Nat.eq_dec x y); auto.
  constructor; auto. intros J. apply in_remove in J. tauto.
Qed.

Lemma total_at_most (f : entry -> N) l ns :
  NoDup ns -> (forall n, In n ns -> (0 < n <= length l)%nat) -> total_at f l ns <= total f l.
Proof.
  revert ns. induction l as [|e l IH] using rev_ind; intros ns D B.
  - destruct ns as [|n ns]; simpl; [lia|]. specialize (B n (or_introl eq_refl)). simpl in B. lia.
  - rewrite total_app. cbn [total].
    assert (A : forall ms, NoDup ms -> (forall n, In n ms -> (0 < n <= length (l ++ [e]))%nat) ->
      total_at f (l ++ [e]) ms <= total_at f l (remove Nat.eq_dec (S (length l)) ms) + f e).
    { induction ms as [|n ms IHm]; intros Dm Bm; [simpl; lia|]. inversion Dm as [|? ? Nm Dm']; subst.
      cbn [total_at remove]. assert (Bm' := fun x I => Bm x (or_intror I)). specialize (IHm Dm' Bm').
      destruct (Nat.eq_dec (S (length l)) n) as [<-|N].
      - cbn [entry_at]. rewrite nth_error_app2, Nat.sub_diag by lia. cbn [nth_error].
        rewrite notin_remove in * by auto.
        assert (Q : forall xs, (forall n, In n xs -> (0 < n <= length l)%nat) -> total_at f (l ++ [e]) xs = total_at f l xs).
        { induction xs as [|x xs IHx]; intros Bx; auto. cbn [total_at].
          pose proof (Bx x (or_introl eq_refl)). destruct x as [|x]; [lia|]. cbn [entry_at].
          rewrite nth_error_app1 by lia. rewrite (IHx (fun y I => Bx y (or_intror I))). auto. }
        rewrite Q; [lia|]. intros x I. specialize (Bm' x I). rewrite app_length in Bm'. simpl in Bm'.
        assert (x <> S (length l)) by congruence. lia.
      - cbn [total_at]. pose proof (Bm n (or_introl eq_refl)) as L. rewrite app_length in L. simpl in L.
        destruct n as [|n]; [lia|]. cbn [entry_at] in *. rewrite nth_error_app1 by lia. lia. }
    specialize (A ns D B). assert (R : total_at f l (remove Nat.eq_dec (S (length l)) ns) <= total f l); [|lia].
    apply IH.
    + apply remove_once. auto.
    + intros n I. apply in_remove in I as (I & N). specialize (B n I). rewrite app_length in B. simpl in B. lia.
Qed.

(** Whatever was requested, and whoever crashed when: the losses of all mechanisms that ever ran are within the budget
    of what is durable, and so are their deltas. *)
Theorem what_ran_was_paid : forall w, reachable w -> ran w <> [] ->
  exists s, replay (firstn (durable w) (disk w)) = Some s /\ NoDup (ran w) /\
    total_at amount_of (firstn (durable w) (disk w)) (ran w) <= budget s /\
    total_at delta_of (firstn (durable w) (disk w)) (ran w) <= delta_keys s.
Proof.
  intros w R NE. destruct (always_sound w R) as [I1 I2 I3 _ _ _ I7 _ I9 _ _ _].
  assert (D : disk w <> []).
  { destruct (ran w) as [|c r]; [congruence|]. destruct (I7 c (or_introl eq_refl)) as (e & H & _). intros E.
    rewrite E, firstn_nil in H. destruct c as [|[|c]]; discriminate. }
  destruct (I1 D) as (t & T). destruct (beginnings_replay (durable w) (disk w) t (I3 D) T) as (s & S & _).
  exists s. destruct (never_overspent _ _ S) as (A & B & C & E & F). repeat split; auto.
  - etransitivity; [apply total_at_most; auto|]; [|lia].
    intros n I. apply I7 in I. pose proof (paid_at_most _ _ _ I). rewrite firstn_length. lia.
  - etransitivity; [apply total_at_most; auto|]; [|lia].
    intros n I. apply I7 in I. pose proof (paid_at_most _ _ _ I). rewrite firstn_length. lia.
Qed.

(** Each answer that anybody has seen is of a charge among the durable entries. *)
Theorem what_is_shown_was_charged : forall w c, reachable w -> In c (shown w) ->
  exists e, entry_at (firstn (durable w) (disk w)) c = Some e /\ is_charge e = true.
Proof. intros w c R I. apply (shown_paid w (always_sound w R) c I). Qed.

(** A restart finds a log that replays, within its budget. *)
Theorem restarts_find_no_overspending : forall w, reachable w -> disk w <> [] ->
  exists s, replay (disk w) = Some s /\ total amount_of (disk w) <= budget s /\ total delta_of (disk w) <= delta_keys s.
Proof.
  intros w R D. destruct (replays w (always_sound w R) D) as (s & S). exists s.
  destruct (never_overspent _ _ S) as (A & B & C & E & _). repeat split; auto; lia.
Qed.

(** Without a raise, the budget is the one that the ledger was opened with. *)
Theorem the_budget_stays : forall l b k s, replay (Open b k :: l) = Some s ->
  (forall e, In e l -> match e with Raise _ _ => False | _ => True end) -> budget s = b.
Proof.
  intros l b k s H N. simpl in H.
  assert (G : forall l s t, (forall e, In e l -> match e with Raise _ _ => False | _ => True end) ->
    fold_all s l = Some t -> budget t = budget s).
  { clear. induction l as [|e l IH]; simpl; intros s t N H; [inversion H; auto|].
    destruct (fold s e) as [s'|] eqn:E; [|discriminate]. transitivity (budget s'); [apply IH; auto; intros x I; apply N; auto|].
    pose proof (N e (or_introl eq_refl)) as M. destruct s as [n v b x d y f c u]. unfold fold in E.
    destruct e; try discriminate; try tauto;
      repeat match type of E with
             | (if ?p then _ else _) = Some _ => destruct p; try discriminate
             | Some (if ?p then _ else _) = Some _ => destruct p
             end; inversion E; subst; auto. }
  apply (G l _ s N H).
Qed.
