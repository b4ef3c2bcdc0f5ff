package record

import (
	"fmt"
	"reflect"
)

// Body is the content of a record of one kind. The types of this package are
// the only bodies.
type Body interface{ kind() Kind }

// KindOf returns the kind of record that a body belongs to.
func KindOf(b Body) Kind { return b.kind() }

// bodies maps each kind to its body type.
var bodies = func() map[Kind]reflect.Type {
	types := map[Kind]reflect.Type{}
	for _, b := range []Body{
		&Session{}, &Delegated{}, &Revoked{}, &Remembered{}, &Labelled{}, &Heard{}, &Begun{}, &Prompted{}, &Adopted{}, &Invalid{}, &Denied{}, &Asked{}, &Answered{}, &Held{}, &Dropped{}, &Started{}, &Approved{}, &Changed{}, &PostVersions{}, &RevertNote{},
		&State{}, &Done{}, &Failed{}, &Unknown{}, &Decided{}, &Verified{}, &Savepoint{}, &Nested{}, &NestEnded{}, &RevertedTo{}, &Reverting{},
		&Reverted{}, &CommitDecided{}, &Committing{}, &Committed{}, &Aborting{}, &Aborted{}, &Erased{}, &RevertedBy{}, &Feedback{}, &Accepted{},
	} {
		types[b.kind()] = reflect.TypeOf(b).Elem()
	}
	return types
}()

// newBody returns an empty body to decode into.
func newBody(k Kind) (Body, error) {
	if t, ok := bodies[k]; ok {
		b, _ := reflect.New(t).Interface().(Body) // bodies lists only types that implement Body
		return b, nil
	}
	return nil, fmt.Errorf("record kind %q is not known here: a newer remit wrote it", k)
}

func (*Session) kind() Kind       { return KindSession }
func (*Delegated) kind() Kind     { return KindDelegated }
func (*Revoked) kind() Kind       { return KindRevoked }
func (*Remembered) kind() Kind    { return KindRemembered }
func (*Labelled) kind() Kind      { return KindLabelled }
func (*Heard) kind() Kind         { return KindHeard }
func (*Begun) kind() Kind         { return KindBegun }
func (*Prompted) kind() Kind      { return KindPrompted }
func (*Adopted) kind() Kind       { return KindAdopted }
func (*Invalid) kind() Kind       { return KindInvalid }
func (*Denied) kind() Kind        { return KindDenied }
func (*Asked) kind() Kind         { return KindAsked }
func (*Answered) kind() Kind      { return KindAnswered }
func (*Approved) kind() Kind      { return KindApproved }
func (*Held) kind() Kind          { return KindHeld }
func (*Dropped) kind() Kind       { return KindDropped }
func (*Started) kind() Kind       { return KindStarted }
func (*Changed) kind() Kind       { return KindChanged }
func (*PostVersions) kind() Kind  { return KindPostVersions }
func (*RevertNote) kind() Kind    { return KindRevertNote }
func (*State) kind() Kind         { return KindState }
func (*Done) kind() Kind          { return KindDone }
func (*Failed) kind() Kind        { return KindFailed }
func (*Unknown) kind() Kind       { return KindUnknown }
func (*Decided) kind() Kind       { return KindDecided }
func (*Verified) kind() Kind      { return KindVerified }
func (*Savepoint) kind() Kind     { return KindSavepoint }
func (*Nested) kind() Kind        { return KindNested }
func (*NestEnded) kind() Kind     { return KindNestEnded }
func (*RevertedTo) kind() Kind    { return KindRevertedTo }
func (*Reverting) kind() Kind     { return KindReverting }
func (*Reverted) kind() Kind      { return KindReverted }
func (*CommitDecided) kind() Kind { return KindCommitDecided }
func (*Committing) kind() Kind    { return KindCommitting }
func (*Committed) kind() Kind     { return KindCommitted }
func (*Aborting) kind() Kind      { return KindAborting }
func (*Aborted) kind() Kind       { return KindAborted }
func (*Erased) kind() Kind        { return KindErased }
func (*RevertedBy) kind() Kind    { return KindRevertedBy }
func (*Feedback) kind() Kind      { return KindFeedback }
func (*Accepted) kind() Kind      { return KindAccepted }
