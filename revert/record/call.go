package record

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/remit-dev/remit/revert/effect"
)

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
	// Others, During and Purpose are of a call that waited and that no person approved: the other accesses of its
	// question, and what Asked says of it.
	Others   []Access        `json:"others,omitempty"`
	During   bool            `json:"during,omitempty"`
	Purpose  string          `json:"purpose,omitempty"`
	Decision json.RawMessage `json:"decision"`
	Why      string          `json:"why"`
	// Class and Declared are the effect class of this call, as the policy saw it.
	Class    effect.Class  `json:"class,omitempty"`
	Declared bool          `json:"declared,omitempty"`
	Filter   string        `json:"filter,omitempty"`   // that refused it
	Replaced []Replacement `json:"replaced,omitempty"` // inputs that filters put another one in the place of, oldest first
	EndLoop  string        `json:"ends,omitempty"`     // why the loop of whoever made the call is to end
	// Timeout is true if the policy did not decide in time. The call ended with status timeout.
	Timeout bool `json:"timeout,omitempty"`
}

// Status returns the status that the call ended with: denied or timeout.
func (d *Denied) Status() string {
	if d.Timeout {
		return "timeout"
	}
	return "denied"
}

// Replacement is an input that a filter put another one in the place of.
type Replacement struct {
	By       string `json:"by"`    // the filter
	Original string `json:"given"` // digest of the input before
}

// Asked is a suspended decision: everything that was shown, and what an answer
// is bound to. It survives the process.
type Asked struct {
	Tool        ToolRef         `json:"tool"`
	Input       json.RawMessage `json:"input"` // canonical
	InputDigest string          `json:"input_digest"`
	Access      []Access        `json:"access"`
	Decision    json.RawMessage `json:"decision"`
	Class       effect.Class    `json:"class,omitempty"` // as in Denied
	Declared    bool            `json:"declared,omitempty"`
	Digest      string          `json:"digest"`         // of the ask; an answer names it
	Nest        string          `json:"nest,omitempty"` // the nested transaction that the call is in
	Expires     time.Time       `json:"expires"`        // UTC; later answers count as none
	// Askers are the processes that asked this question and the earlier ones of the call,
	// each with what started it, oldest first; see internal/lineage. A person who lets a
	// call go on asks its next question, so the newest alone does not tell who the agent is.
	Askers []json.RawMessage `json:"askers,omitempty"`
	// During is set if the call asked while it ran: it runs again once that is
	// approved, or, if its start is on record, it still runs and waits.
	During bool `json:"during,omitempty"`
	// Purpose is "apply" if the call waits with changes whose content is known;
	// Preview shows them.
	Purpose string `json:"purpose,omitempty"`
	Preview string `json:"preview,omitempty"`
	// Approvals are those that the call got before this question, oldest first. They
	// count when it runs again, if it asks the same.
	Approvals []Approved `json:"approvals,omitempty"`

	Replaced []Replacement `json:"replaced,omitempty"` // as in Denied
}

// Earlier says, for people, which questions of the call were approved before this one,
// whose approvals still count; "" if it is the first.
func (a *Asked) Earlier() string {
	if len(a.Approvals) == 0 {
		return ""
	}
	var each []string
	for _, before := range a.Approvals {
		each = append(each, before.words())
	}
	return fmt.Sprintf("this is question %d of the call; approved before, and still counted: %s", len(each)+1, strings.Join(each, "; "))
}

// maxNamed bounds how many accesses of an approval are named.
const maxNamed = 3

func (a Approved) words() string {
	var names []string
	for i, access := range a.Access {
		if i == maxNamed {
			names = append(names, fmt.Sprintf("%d more", len(a.Access)-i))
			break
		}
		names = append(names, access.Action+" "+access.Resource)
	}
	return strings.TrimPrefix(strings.Join(names, ", ")+" (by "+a.By+")", " ")
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
	Class       effect.Class    `json:"class"`
	Declared    bool            `json:"declared"`          // false: no class was declared
	Reverts     bool            `json:"reverts,omitempty"` // the tool declares a Revert, which taking the call back needs
	Confinement string          `json:"confinement"`
	Coverage    effect.Coverage `json:"coverage,omitempty"` // empty: confined with handles or in a sandbox, else declared
	Observed    []string        `json:"observed,omitempty"` // roots that were compared before and after the call
	Access      []Access        `json:"access"`             // decided before the call
	Right       []Access        `json:"right"`              // what taking it back may touch
	Decision    json.RawMessage `json:"decision"`
	Approval    *Approval       `json:"approval,omitempty"` // where the policy asked for one

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

// Covers returns how much of what the call does is known.
func (s *Started) Covers() effect.Coverage {
	switch {
	case s.Coverage != "":
		return s.Coverage
	case s.Confinement == "handles", s.Confinement == "sandbox":
		return effect.Confined
	default:
		return effect.Declared
	}
}

// Approval is who answered an ask, bound to what was asked.
type Approval struct {
	By     string `json:"by"`
	Digest string `json:"digest"`
	Grant  string `json:"grant,omitempty"` // the remembered approval that stood for an answer
}

// Approved is an approval that a running call got, on record before anything that it
// lets happen.
type Approved struct {
	Approval
	Access  []Access `json:"access,omitempty"`  // what was approved
	Purpose string   `json:"purpose,omitempty"` // apply: changes whose content was known
}

// Changed is one effect, durable before it happens.
type Changed struct {
	effect.Change
}

// Landed says which versions changes really left, for a call that goes wrong and
// so has no Done to say it.
type Landed struct {
	Posts []Post `json:"posts"`
}

// Unseen are files that the policy masks in folders which were compared before and after a call. Their content was neither kept nor compared.
// Names begin with that of the root.
type Unseen struct {
	Names   []string `json:"names,omitempty"`   // the same before and after the call; what is in a folder of these can be another
	Changed []string `json:"changed,omitempty"` // others may have changed them too
	Came    []string `json:"came,omitempty"`
	Gone    []string `json:"gone,omitempty"`
	More    int      `json:"more,omitempty"` // that are not listed
}

// Key is that of the note which holds it.
func (Unseen) Key() string { return "remit.unseen" }

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
	N    int          `json:"n"`
	Post effect.Token `json:"post"`
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
	// Purpose is "apply" if the policy decided about changes that were known and not made
	// yet: those of a program, or of a handle. It is empty otherwise.
	Purpose string `json:"purpose,omitempty"`
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

// CallRef names a call and its transaction.
type CallRef struct {
	Txn  string `json:"txn"`
	Call string `json:"call"`
}

// Held is a call that waits until its transaction commits: the write-ahead record
// that it will start with, durable before anybody is told that it is queued.
type Held struct {
	Started
	// Idempotent: the tool says that one operation key has one effect, so that a
	// release of unknown outcome may be sent again under the same one.
	Idempotent bool `json:"idempotent,omitempty"`
	// Masks and Requires are what the decision attached to the right that it gave:
	// what a program does not see, and what must be there when it runs.
	Masks    []string `json:"masks,omitempty"`
	Requires []string `json:"requires,omitempty"`
}

// Dropped says that a held call will not be released.
type Dropped struct {
	Cause string `json:"cause"`        // abort, savepoint, nest, undo, budget
	By    string `json:"by,omitempty"` // who asked for it; empty: the runtime itself
}
