package revert

import (
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"github.com/remit-dev/remit/provenance"
)

// Kind names what a record says.
type Kind string

// The kinds of record. A kind is never reused for another meaning.
const (
	KindSession    Kind = "session"     // a session was opened
	KindHanded     Kind = "handed"      // a session handed some of its grant on to another
	KindRevoked    Kind = "revoked"     // a grant was taken away
	KindRemembered Kind = "remembered"  // an approval was given for calls to come, too
	KindLabelled   Kind = "labelled"    // the policy gave the session labels
	KindGiven      Kind = "given"       // whoever is behind the session named URLs
	KindBegun      Kind = "begun"       // a transaction began
	KindAdopted    Kind = "adopted"     // a transaction whose owner was gone got a new one
	KindInvalid    Kind = "invalid"     // a call was refused before policy
	KindDenied     Kind = "denied"      // a call was denied; its code was never entered
	KindAsked      Kind = "asked"       // a call waits until somebody approves it
	KindAnswered   Kind = "answered"    // somebody approved or refused an asked call
	KindHeld       Kind = "held"        // a call waits until its transaction commits
	KindDropped    Kind = "dropped"     // a held call will not be released
	KindStarted    Kind = "started"     // a call may have effects from now on
	KindChanged    Kind = "changed"     // one effect is about to happen
	KindLanded     Kind = "landed"      // versions that changes really left, of a call without a result
	KindNoted      Kind = "noted"       // the tool noted something for its own undo
	KindState      Kind = "state"       // what a stateful tool holds for a session from here on
	KindDone       Kind = "done"        // the call's code returned a result
	KindFailed     Kind = "failed"      // the call ended, proven to have no effect left
	KindUnknown    Kind = "unknown"     // the call ended and its effect cannot be told
	KindDecided    Kind = "decided"     // a person said what became of a call of unknown outcome
	KindVerified   Kind = "verified"    // somebody looked whether the effect is there
	KindSavepoint  Kind = "savepoint"   // a name for this point of the transaction
	KindNested     Kind = "nested"      // a transaction began inside this one
	KindNestEnded  Kind = "nest_ended"  // it joined what it is in, or was taken back
	KindRevertedTo Kind = "reverted_to" // everything after a savepoint was taken back
	KindReverting  Kind = "reverting"   // a call is about to be taken back
	KindReverted   Kind = "reverted"    // what taking a call back came to
	KindCommitting Kind = "committing"  // the transaction is to commit: its held calls are released from now on
	KindCommitted  Kind = "committed"   // the transaction ended, its effects stay
	KindAborting   Kind = "aborting"    // the transaction is being taken back
	KindAborted    Kind = "aborted"     // the transaction ended, taken back as far as listed
	KindErased     Kind = "erased"      // the bodies of a call's records were destroyed
	KindUndoneBy   Kind = "undone_by"   // an ended transaction is being taken back, or brought back, by another
	KindFeedback   Kind = "feedback"    // somebody said what they think of a call
)

// Kinds lists every kind.
func Kinds() []Kind {
	return []Kind{
		KindSession, KindHanded, KindRevoked, KindRemembered, KindLabelled, KindGiven, KindBegun, KindAdopted, KindInvalid, KindDenied, KindAsked, KindAnswered, KindHeld, KindDropped, KindStarted, KindChanged,
		KindLanded, KindNoted, KindState, KindDone, KindFailed, KindUnknown, KindDecided, KindVerified, KindSavepoint, KindNested, KindNestEnded, KindRevertedTo,
		KindReverting, KindReverted, KindCommitting, KindCommitted, KindAborting, KindAborted, KindErased, KindUndoneBy, KindFeedback,
	}
}

// Erasable reports whether the bodies of such records go when their call is
// erased. What binds a session or a transaction, such as labels, never does.
func (k Kind) Erasable() bool {
	switch k {
	case KindInvalid, KindDenied, KindAsked, KindAnswered, KindHeld, KindDropped, KindStarted, KindChanged, KindLanded, KindNoted,
		KindState, KindDone, KindFailed, KindUnknown, KindDecided, KindVerified, KindReverting, KindReverted, KindFeedback:
		return true
	default:
		return false
	}
}

// Body is what a record of one kind says. The types of this package are the
// only bodies.
type Body interface{ kind() Kind }

// bodies has a body of each kind.
var bodies = func() map[Kind]reflect.Type {
	types := map[Kind]reflect.Type{}
	for _, b := range []Body{
		&Session{}, &Handed{}, &Revoked{}, &Remembered{}, &Labelled{}, &Given{}, &Begun{}, &Adopted{}, &Invalid{}, &Denied{}, &Asked{}, &Answered{}, &Held{}, &Dropped{}, &Started{}, &Changed{}, &Landed{}, &Noted{},
		&State{}, &Done{}, &Failed{}, &Unknown{}, &Decided{}, &Verified{}, &Savepoint{}, &Nested{}, &NestEnded{}, &RevertedTo{}, &Reverting{},
		&Reverted{}, &Committing{}, &Committed{}, &Aborting{}, &Aborted{}, &Erased{}, &UndoneBy{}, &Feedback{},
	} {
		types[b.kind()] = reflect.TypeOf(b).Elem()
	}
	return types
}()

// newBody returns an empty body to decode into.
func newBody(k Kind) (Body, error) {
	if t, ok := bodies[k]; ok {
		b, _ := reflect.New(t).Interface().(Body) // as the list above is of bodies
		return b, nil
	}
	return nil, fmt.Errorf("record kind %q is not known here: a newer remit wrote it", k)
}

// Session opens a session.
type Session struct {
	Principal json.RawMessage `json:"principal"`
	Roots     []Root          `json:"roots"`
	Policy    string          `json:"policy"`           // revision
	Grant     json.RawMessage `json:"grant,omitempty"`  // what the session holds
	Token     string          `json:"token,omitempty"`  // digest of what resumes it
	Parent    string          `json:"parent,omitempty"` // the session that handed the grant on
	Expires   time.Time       `json:"expires,omitzero"` // of the grant
	Uses      int             `json:"uses,omitempty"`   // calls that may start under the grant; 0: any number
	Client    json.RawMessage `json:"client,omitempty"` // who its tools and results are shown to
}

// Handed says that a session handed some of its grant on.
type Handed struct {
	To string `json:"to"` // the session that holds it
}

// Revoked takes a grant away.
type Revoked struct {
	Grant string `json:"grant"` // a session, or an approval that was remembered
	By    string `json:"by"`
	Why   string `json:"why,omitempty"`
}

// Root is a named folder that calls may be granted parts of.
type Root struct {
	Name     string          `json:"name"`
	Path     string          `json:"path"`               // absolute, of this machine
	Identity json.RawMessage `json:"identity,omitempty"` // tells a folder from one that took its place
}

// Remembered is an approval that also holds for calls to come: of the same tool,
// for the same principal, asked about for reasons that were shown, with no access
// beyond these.
type Remembered struct {
	ID          string    `json:"id"`
	Tool        ToolRef   `json:"tool"`
	Principal   string    `json:"principal"`
	Chain       []string  `json:"chain,omitempty"` // of the principal
	Access      []Access  `json:"access"`
	InputDigest string    `json:"input_digest,omitempty"` // set: only with this input
	Reasons     []string  `json:"reasons"`                // why somebody was asked
	Always      bool      `json:"always"`                 // false: only in the session of the record
	Expires     time.Time `json:"expires"`                // UTC
	By          string    `json:"by"`
	Why         string    `json:"why,omitempty"`
	From        CallRef   `json:"from"` // the call that was asked about
}

// Labelled gives a session labels, which policies read and which are never
// taken away.
type Labelled struct {
	Labels   []string `json:"labels"`
	Requires []string `json:"requires,omitempty"` // what each call must have from then on, as in a policy's require
	By       CallRef  `json:"by"`                 // the call that earned them; none: the session that it was handed on from had them
}

// Given says which URLs whoever is behind a session named, each by its digests: of all of it,
// and of what a permission would be about. The URLs themselves are nowhere.
type Given struct {
	URLs []string `json:"urls"`
}

// Begun begins a transaction.
type Begun struct {
	Owner  string   `json:"owner"`
	Undoes string   `json:"undoes,omitempty"` // the ended transaction that this one takes back
	Also   []string `json:"also,omitempty"`   // further ended transactions, of which calls that lie on those are taken back
	Redoes string   `json:"redoes,omitempty"` // the reverted transaction whose effects this one brings back
	Only   string   `json:"only,omitempty"`   // with redoes: what this undo transaction took back, and no other
}

// Adopted gives an unfinished transaction a new owner.
type Adopted struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// ToolRef names a declaration and where its undo is found again.
type ToolRef struct {
	Name        string `json:"name"`
	Version     string `json:"version,omitempty"`
	Digest      string `json:"digest,omitempty"`
	Settings    string `json:"settings,omitempty"` // digest of what it was configured with
	UndoVersion string `json:"undo_version,omitempty"`
}

// Invalid is a call that was refused before anybody was asked.
type Invalid struct {
	Tool ToolRef `json:"tool"`
	Why  string  `json:"why"`
}

// Denied is a call whose code was never entered.
type Denied struct {
	Tool        ToolRef         `json:"tool"`
	Key         string          `json:"key"`
	InputDigest string          `json:"input_digest"`
	Input       json.RawMessage `json:"input"`
	Stage       string          `json:"stage"`  // grant, policy, approver, filter
	Access      Access          `json:"access"` // the access that was refused
	Decision    json.RawMessage `json:"decision"`
	Why         string          `json:"why"`
	Filter      string          `json:"filter,omitempty"`   // that refused it
	Replaced    []Replacement   `json:"replaced,omitempty"` // inputs that filters put another one in the place of, oldest first
	Ends        string          `json:"ends,omitempty"`     // why the loop of whoever made the call is to end
}

// Replacement is an input that a filter put another one in the place of.
type Replacement struct {
	By    string `json:"by"`    // the filter
	Given string `json:"given"` // digest of the input before
}

// Asked is a suspended decision: everything that was shown, and what an answer
// is bound to. It survives the process.
type Asked struct {
	Tool        ToolRef         `json:"tool"`
	Input       json.RawMessage `json:"input"` // canonical
	InputDigest string          `json:"input_digest"`
	Access      []Access        `json:"access"`
	Decision    json.RawMessage `json:"decision"`
	Digest      string          `json:"digest"`         // of the ask; an answer names it
	Nest        string          `json:"nest,omitempty"` // the nested transaction that the call is in
	Expires     time.Time       `json:"expires"`        // UTC; later answers count as none
	// Purpose is "apply" where the call's program has run, and waits with what it
	// wants to change; Preview shows that, and Approval is who approved before that
	// the program runs.
	Purpose  string    `json:"purpose,omitempty"`
	Preview  string    `json:"preview,omitempty"`
	Approval *Approval `json:"approval,omitempty"`

	Replaced []Replacement `json:"replaced,omitempty"` // as in Denied
}

// Answered is what somebody said to an asked call. Anybody may write it, so it
// decides nothing by itself: whoever resumes the call looks whether it fits.
type Answered struct {
	Approved bool   `json:"approved"`
	By       string `json:"by"`
	Why      string `json:"why,omitempty"`
	Digest   string `json:"digest"` // of the ask that was answered
}

// Access is one access in text, as it was decided.
type Access struct {
	Action   string `json:"action"`
	Resource string `json:"resource"`
	Method   string `json:"method,omitempty"`
}

// Started is the write-ahead record of a call.
type Started struct {
	Sequence    int             `json:"sequence"` // number within its transaction, from 1
	Key         string          `json:"key"`      // operation key
	Tool        ToolRef         `json:"tool"`
	Input       json.RawMessage `json:"input"` // canonical
	InputDigest string          `json:"input_digest"`
	Class       EffectClass     `json:"class"`
	Declared    bool            `json:"declared"`          // false: no class was declared
	Reverts     bool            `json:"reverts,omitempty"` // the tool declares a Revert, which taking the call back needs
	Confinement string          `json:"confinement"`
	Access      []Access        `json:"access"` // decided before the call
	Right       []Access        `json:"right"`  // what taking it back may touch
	Decision    json.RawMessage `json:"decision"`
	Approval    *Approval       `json:"approval,omitempty"` // where the policy asked for one
	// Previewed is who approved what the call's program wanted to change.
	Previewed *Approval `json:"previewed,omitempty"`

	Nest   string                 `json:"nest,omitempty"`   // the nested transaction that the call is in
	Counts map[string]json.Number `json:"counts,omitempty"` // what the call adds to sums of its session
	// Redacted are JSON pointers to what the policy keeps out of Input and of the
	// output.
	Redacted []string `json:"redacted,omitempty"`

	Replaced []Replacement `json:"replaced,omitempty"` // as in Denied
	// AnsweredBy is the filter that gave the result in the tool's place: the tool's code
	// is not entered, and the call has no effect.
	AnsweredBy string `json:"answered_by,omitempty"`
	Ends       string `json:"ends,omitempty"` // as in Denied
}

// Approval is who answered an ask, bound to what was asked.
type Approval struct {
	By     string `json:"by"`
	Digest string `json:"digest"`
	Grant  string `json:"grant,omitempty"` // the remembered approval that stood for an answer
}

// Changed is one effect, durable before it happens.
type Changed struct {
	Change
}

// Landed says which versions changes really left, for a call that goes wrong and
// so has no Done to say it.
type Landed struct {
	Posts []Post `json:"posts"`
}

// Noted is something a tool wants to know when it takes the call back.
type Noted struct {
	Key   string          `json:"key"`
	Value json.RawMessage `json:"value"`
}

// Done is a result, not yet verified.
type Done struct {
	Output       json.RawMessage `json:"output"`
	OutputDigest string          `json:"output_digest"`
	Recovered    bool            `json:"recovered,omitempty"` // found after a crash; the output was lost
	Posts        []Post          `json:"posts,omitempty"`

	// Delivered is what filters made of Output: whoever asked got that. The tool's
	// Verify and Revert work with Output.
	Delivered       json.RawMessage `json:"delivered,omitempty"`
	DeliveredDigest string          `json:"delivered_digest,omitempty"`
	DeliveredBy     []string        `json:"delivered_by,omitempty"` // the filters that changed it, in the order in which they did
	Undelivered     string          `json:"undelivered,omitempty"`  // why filters let nothing of it be delivered: the call did not verify
	Ends            string          `json:"ends,omitempty"`         // as in Denied, with what was said after the call had run
}

// Post is the version that a change left, where it was not known before.
type Post struct {
	N    int   `json:"n"`
	Post Token `json:"post"`
}

// Failed ends a call that has no effect left.
type Failed struct {
	Status string `json:"status"` // failed, cancelled, timeout, denied
	Stage  string `json:"stage,omitempty"`
	Why    string `json:"why"`
	Proof  string `json:"proof"` // taken_back, no_effect, probe, pure, not_started

	// Of a call that was denied while it ran: what it asked for and did not get, and
	// how that was decided.
	Access   *Access         `json:"access,omitempty"`
	Decision json.RawMessage `json:"decision,omitempty"`
}

// Spent reports whether the call may have had an effect before it ended without
// one: what it added to the sums of its session then stays added, since what was
// taken back does not refill a budget.
func (f *Failed) Spent() bool {
	return f.Proof != "no_effect" && f.Proof != "probe" && f.Proof != "not_started"
}

// Unknown ends a call whose effect cannot be told.
type Unknown struct {
	Status string `json:"status"` // unknown
	Why    string `json:"why"`
}

// Decided is what a person says of a call whose outcome nobody could tell. The
// first one counts.
type Decided struct {
	Applied bool   `json:"applied"` // its effect is there; else it never happened, or is gone
	By      string `json:"by"`
	Why     string `json:"why"` // what they looked at
}

// Verified is one look at the world.
type Verified struct {
	Phase    string   `json:"phase"`   // call, recovery, undo
	Verdict  string   `json:"verdict"` // applied, partial, absent, cannot_tell
	OK       bool     `json:"ok"`      // false: the call did not verify
	Findings []string `json:"findings,omitempty"`
	Why      string   `json:"why,omitempty"`      // what is broken, where it is not OK
	Evidence string   `json:"evidence,omitempty"` // digest
}

// Savepoint names this point of a transaction.
type Savepoint struct {
	Name string `json:"name"`
}

// Nested begins a transaction inside another, for the calls that name it.
type Nested struct {
	ID      string `json:"id"`
	In      string `json:"in,omitempty"` // the nested transaction that it is in; empty: the whole
	Session string `json:"session"`      // whose calls they are
}

// NestEnded ends a nested transaction.
type NestEnded struct {
	ID       string `json:"id"`
	Reverted bool   `json:"reverted"`           // false: its calls are now those of what it was in
	Complete bool   `json:"complete,omitempty"` // of one that was taken back: nothing is left
}

// RevertedTo says that everything after a savepoint was taken back, as far as
// the reverted records between tell.
type RevertedTo struct {
	Name     string `json:"name"`
	Complete bool   `json:"complete"`
}

// Reverting is the write-ahead record of taking one call back. Its header names
// the undo call; Of names the call that is taken back.
type Reverting struct {
	Of    CallRef `json:"of"`
	Key   string  `json:"key"`          // revert key
	Cause string  `json:"cause"`        // failed, verify_failed, savepoint, abort, undo, recovery, redo
	By    string  `json:"by,omitempty"` // who asked for it: the person where one is named, the principal whose program did; empty: the runtime itself
	Steps []Step  `json:"steps"`
}

// CallRef names a call and its transaction.
type CallRef struct {
	Txn  string `json:"txn"`
	Call string `json:"call"`
}

// Reverted is what taking one call back came to.
type Reverted struct {
	Of       CallRef  `json:"of"`
	Complete bool     `json:"complete"`
	Results  []Result `json:"results"`
}

// Committed ends a transaction; its effects stay.
type Committed struct{}

// Aborting says that the transaction is being taken back.
type Aborting struct {
	Why string `json:"why"`
}

// Aborted ends a transaction that was taken back. Complete false: what was not
// is in the reverted records, and the transaction is never shown as success.
type Aborted struct {
	Complete bool `json:"complete"`
}

// Erased says that the bodies of the records of one call are gone, of a call or of
// the taking back of one. It is stored in the same step in which they are
// destroyed, and is all that is left to say what the call was.
type Erased struct {
	Cause  string      `json:"cause"`        // asked, retention
	By     string      `json:"by,omitempty"` // the person who asked
	Why    string      `json:"why,omitempty"`
	Tool   ToolRef     `json:"tool"`
	Class  EffectClass `json:"class,omitempty"`
	As     Phase       `json:"as,omitempty"`     // how the call had ended; empty of a taking back
	Status string      `json:"status,omitempty"` // its outcome; empty where it never had one
	Ended  time.Time   `json:"ended,omitzero"`
	// Counts are what the call adds to sums of its session, where it was Spent: an
	// erasure gives no budget back.
	Counts  map[string]json.Number `json:"counts,omitempty"`
	Spent   bool                   `json:"spent,omitempty"`
	Left    bool                   `json:"left,omitempty"`    // something of the call may be there, and cannot be taken back any more
	Touched []string               `json:"touched,omitempty"` // what it changed; not where somebody asked
}

// UndoneBy stands in an ended transaction and names the one that takes it back,
// or brings it back.
type UndoneBy struct {
	Txn string `json:"txn"`
}

// Feedback is what somebody thinks of a call. It says nothing about what became of
// it, and may come at any time, also when the transaction has ended.
type Feedback struct {
	provenance.Feedback
}

func (*Session) kind() Kind    { return KindSession }
func (*Handed) kind() Kind     { return KindHanded }
func (*Revoked) kind() Kind    { return KindRevoked }
func (*Remembered) kind() Kind { return KindRemembered }
func (*Labelled) kind() Kind   { return KindLabelled }
func (*Given) kind() Kind      { return KindGiven }
func (*Begun) kind() Kind      { return KindBegun }
func (*Adopted) kind() Kind    { return KindAdopted }
func (*Invalid) kind() Kind    { return KindInvalid }
func (*Denied) kind() Kind     { return KindDenied }
func (*Asked) kind() Kind      { return KindAsked }
func (*Answered) kind() Kind   { return KindAnswered }
func (*Held) kind() Kind       { return KindHeld }
func (*Dropped) kind() Kind    { return KindDropped }
func (*Started) kind() Kind    { return KindStarted }
func (*Changed) kind() Kind    { return KindChanged }
func (*Landed) kind() Kind     { return KindLanded }
func (*Noted) kind() Kind      { return KindNoted }
func (*State) kind() Kind      { return KindState }
func (*Done) kind() Kind       { return KindDone }
func (*Failed) kind() Kind     { return KindFailed }
func (*Unknown) kind() Kind    { return KindUnknown }
func (*Decided) kind() Kind    { return KindDecided }
func (*Verified) kind() Kind   { return KindVerified }
func (*Savepoint) kind() Kind  { return KindSavepoint }
func (*Nested) kind() Kind     { return KindNested }
func (*NestEnded) kind() Kind  { return KindNestEnded }
func (*RevertedTo) kind() Kind { return KindRevertedTo }
func (*Reverting) kind() Kind  { return KindReverting }
func (*Reverted) kind() Kind   { return KindReverted }
func (*Committing) kind() Kind { return KindCommitting }
func (*Committed) kind() Kind  { return KindCommitted }
func (*Aborting) kind() Kind   { return KindAborting }
func (*Aborted) kind() Kind    { return KindAborted }
func (*Erased) kind() Kind     { return KindErased }
func (*UndoneBy) kind() Kind   { return KindUndoneBy }
func (*Feedback) kind() Kind   { return KindFeedback }
