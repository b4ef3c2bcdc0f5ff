package record

import (
	"fmt"
	"reflect"

	"github.com/remit-dev/remit/revert/kind"
)

// Body is the content of a record of one kind. The types of this package are
// the only bodies.
type Body interface{ kind() kind.Kind }

// KindOf returns the kind of record that a body belongs to.
func KindOf(b Body) kind.Kind { return b.kind() }

// bodies maps each kind to its body type.
var bodies = func() map[kind.Kind]reflect.Type {
	types := map[kind.Kind]reflect.Type{}
	for _, b := range []Body{
		&Session{}, &Handed{}, &Revoked{}, &Remembered{}, &Labelled{}, &Given{}, &Begun{}, &Adopted{}, &Invalid{}, &Denied{}, &Asked{}, &Answered{}, &Held{}, &Dropped{}, &Started{}, &Approved{}, &Changed{}, &Landed{}, &Noted{},
		&State{}, &Done{}, &Failed{}, &Unknown{}, &Decided{}, &Verified{}, &Savepoint{}, &Nested{}, &NestEnded{}, &RevertedTo{}, &Reverting{},
		&Reverted{}, &Committing{}, &Committed{}, &Aborting{}, &Aborted{}, &Erased{}, &UndoneBy{}, &Feedback{}, &Accepted{},
	} {
		types[b.kind()] = reflect.TypeOf(b).Elem()
	}
	return types
}()

// newBody returns an empty body to decode into.
func newBody(k kind.Kind) (Body, error) {
	if t, ok := bodies[k]; ok {
		b, _ := reflect.New(t).Interface().(Body) // bodies lists only types that implement Body
		return b, nil
	}
	return nil, fmt.Errorf("record kind %q is not known here: a newer remit wrote it", k)
}

func (*Session) kind() kind.Kind    { return kind.Session }
func (*Handed) kind() kind.Kind     { return kind.Handed }
func (*Revoked) kind() kind.Kind    { return kind.Revoked }
func (*Remembered) kind() kind.Kind { return kind.Remembered }
func (*Labelled) kind() kind.Kind   { return kind.Labelled }
func (*Given) kind() kind.Kind      { return kind.Given }
func (*Begun) kind() kind.Kind      { return kind.Begun }
func (*Adopted) kind() kind.Kind    { return kind.Adopted }
func (*Invalid) kind() kind.Kind    { return kind.Invalid }
func (*Denied) kind() kind.Kind     { return kind.Denied }
func (*Asked) kind() kind.Kind      { return kind.Asked }
func (*Answered) kind() kind.Kind   { return kind.Answered }
func (*Approved) kind() kind.Kind   { return kind.Approved }
func (*Held) kind() kind.Kind       { return kind.Held }
func (*Dropped) kind() kind.Kind    { return kind.Dropped }
func (*Started) kind() kind.Kind    { return kind.Started }
func (*Changed) kind() kind.Kind    { return kind.Changed }
func (*Landed) kind() kind.Kind     { return kind.Landed }
func (*Noted) kind() kind.Kind      { return kind.Noted }
func (*State) kind() kind.Kind      { return kind.State }
func (*Done) kind() kind.Kind       { return kind.Done }
func (*Failed) kind() kind.Kind     { return kind.Failed }
func (*Unknown) kind() kind.Kind    { return kind.Unknown }
func (*Decided) kind() kind.Kind    { return kind.Decided }
func (*Verified) kind() kind.Kind   { return kind.Verified }
func (*Savepoint) kind() kind.Kind  { return kind.Savepoint }
func (*Nested) kind() kind.Kind     { return kind.Nested }
func (*NestEnded) kind() kind.Kind  { return kind.NestEnded }
func (*RevertedTo) kind() kind.Kind { return kind.RevertedTo }
func (*Reverting) kind() kind.Kind  { return kind.Reverting }
func (*Reverted) kind() kind.Kind   { return kind.Reverted }
func (*Committing) kind() kind.Kind { return kind.Committing }
func (*Committed) kind() kind.Kind  { return kind.Committed }
func (*Aborting) kind() kind.Kind   { return kind.Aborting }
func (*Aborted) kind() kind.Kind    { return kind.Aborted }
func (*Erased) kind() kind.Kind     { return kind.Erased }
func (*UndoneBy) kind() kind.Kind   { return kind.UndoneBy }
func (*Feedback) kind() kind.Kind   { return kind.Feedback }
func (*Accepted) kind() kind.Kind   { return kind.Accepted }
