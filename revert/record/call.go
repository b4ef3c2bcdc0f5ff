package record

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/remit-dev/remit/revert/effect"
)

// ToolRef names a declaration, and the tool that reverts its calls.
type ToolRef struct {
	Name        string `json:"name"`
	Version     string `json:"version,omitempty"`
	Digest      string `json:"digest,omitempty"`
	Settings    string `json:"settings,omitempty"` // digest of the tool's settings
	UndoVersion string `json:"undo_version,omitempty"`
}

// Invalid is a call that the runtime refused before the policy decided.
type Invalid struct {
	Tool ToolRef `json:"tool"`
	Why  string  `json:"why"`
}

// Denied is a call whose code did not start.
type Denied struct {
	Tool        ToolRef         `json:"tool"`
	Key         string          `json:"key"`
	InputDigest string          `json:"input_digest"`
	Input       json.RawMessage `json:"input"`
	Stage       string          `json:"stage"`  // grant, policy, approver, filter
	Access      Access          `json:"access"` // the access that was refused
	// Others, During and Purpose belong to a call that waited and that no
	// person approved: the other accesses of its approval request, and fields
	// of Asked.
	Others   []Access        `json:"others,omitempty"`
	During   bool            `json:"during,omitempty"`
	Purpose  string          `json:"purpose,omitempty"`
	Decision json.RawMessage `json:"decision"`
	Why      string          `json:"why"`
	// Class and Declared are the effect class of this call, as the policy saw it.
	Class    effect.Class  `json:"class,omitempty"`
	Declared bool          `json:"declared,omitempty"`
	Filter   string        `json:"filter,omitempty"`   // the filter that refused it
	Replaced []Replacement `json:"replaced,omitempty"` // inputs that filters replaced, oldest first
	EndLoop  string        `json:"ends,omitempty"`     // why the caller's loop must end
	// Timeout is true if the policy did not decide in time. The call ended with status timeout.
	Timeout bool   `json:"timeout,omitempty"`
	Facts   *Facts `json:"facts,omitempty"` // absent: the policy did not decide
	Order   *Order `json:"order,omitempty"`
}

// Status returns the status that the call ended with: denied or timeout.
func (d *Denied) Status() string {
	if d.Timeout {
		return "timeout"
	}
	return "denied"
}

// Replacement is an input that a filter replaced.
type Replacement struct {
	By       string `json:"by"`       // the filter
	Original string `json:"original"` // digest of the original input
}

// Asked is a suspended decision: everything that the approver was shown, and
// what an answer is bound to. It survives the process.
type Asked struct {
	Tool        ToolRef         `json:"tool"`
	Input       json.RawMessage `json:"input"` // canonical
	InputDigest string          `json:"input_digest"`
	Access      []Access        `json:"access"`
	Decision    json.RawMessage `json:"decision"`
	Class       effect.Class    `json:"class,omitempty"` // as in Denied
	Declared    bool            `json:"declared,omitempty"`
	Digest      string          `json:"digest"`         // digest of the approval request; an answer names it
	Nest        string          `json:"nest,omitempty"` // the nested transaction of the call
	Expires     time.Time       `json:"expires"`        // UTC; later answers do not count
	// Askers are the processes that asked this and the earlier approval
	// requests of the call, each with its parent processes, oldest first; see
	// internal/lineage. A person who resumes a call asks its next request, so
	// the newest asker alone does not identify the agent.
	Processes []json.RawMessage `json:"askers,omitempty"`
	// During is set if the call asked while it ran. It runs again after the
	// approval, or, if its start is on record, it still runs and waits.
	During bool `json:"during,omitempty"`
	// Purpose is "apply" if the call waits with changes of known content.
	// Preview shows them.
	Purpose string `json:"purpose,omitempty"`
	Preview string `json:"preview,omitempty"`
	// Approvals are the approvals that the call got before this request, oldest
	// first. They count when the call runs again and asks the same.
	Approvals []Approved `json:"approvals,omitempty"`

	Replaced []Replacement `json:"replaced,omitempty"` // as in Denied
	Facts    *Facts        `json:"facts,omitempty"`
	Order    *Order        `json:"order,omitempty"`
}

// Earlier returns, for people, which requests of the call were approved before
// this one and still count. It returns "" for the first request.
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

// maxNamed bounds how many accesses of an approval Earlier names.
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

// Answered is an approver's answer to an asked call, or to a CommitDecided. Any process can write it,
// so it decides nothing by itself: the process that resumes the call, or
// commits, checks it.
type Answered struct {
	Approved bool   `json:"approved"`
	By       string `json:"by"`
	Why      string `json:"why,omitempty"`
	Digest   string `json:"digest"` // digest of the approval request
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
	Reverts     bool            `json:"reverts,omitempty"` // the tool declares a Revert, which a revert of the call needs
	Confinement string          `json:"confinement"`
	Coverage    effect.Coverage `json:"coverage,omitempty"` // empty: confined with handles or in a sandbox, else declared
	Observed    []string        `json:"observed,omitempty"` // roots that were compared before and after the call
	Access      []Access        `json:"access"`             // decided before the call
	Right       []Access        `json:"right"`              // accesses that a revert of the call may use
	Decision    json.RawMessage `json:"decision"`
	Approval    *Approval       `json:"approval,omitempty"` // set if the policy asked for one

	Nest   string                 `json:"nest,omitempty"`   // the nested transaction of the call
	Counts map[string]json.Number `json:"counts,omitempty"` // what the call adds to the counters of its session
	// Redacted are JSON pointers to the values that the policy redacts in Input
	// and in the output.
	Redacted []string `json:"redacted,omitempty"`

	Replaced []Replacement `json:"replaced,omitempty"` // as in Denied
	// AnsweredBy is the filter that gave the result instead of the tool. The
	// tool's code does not start, and the call has no effect.
	AnsweredBy string `json:"answered_by,omitempty"`
	Ends       string `json:"ends,omitempty"` // as in Denied
	Facts      *Facts `json:"facts,omitempty"`
	Order      *Order `json:"order,omitempty"`
}

// Covers returns the coverage of the call.
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

// Approval is a positive answer, bound to its approval request.
type Approval struct {
	By     string `json:"by"`
	Digest string `json:"digest"`
	Grant  string `json:"grant,omitempty"` // the remembered approval that was used
}

// Approved is an approval of a running call, on record before anything that it
// permits.
type Approved struct {
	Approval
	Access  []Access `json:"access,omitempty"`  // what was approved
	Purpose string   `json:"purpose,omitempty"` // apply: the content of the changes was known
}

// Changed is one effect, durable before it happens.
type Changed struct {
	effect.Change
}

// PostVersions lists the versions that changes left, for a call that failed and so
// has no Done with them.
type PostVersions struct {
	Posts []Post `json:"posts"`
}

// MaskedFiles are files that the policy masks in folders that the runtime compared
// before and after a call. The runtime neither stored nor compared their
// content. Names begin with the name of the root.
type MaskedFiles struct {
	Names   []string `json:"names,omitempty"`   // masked before and after the call; the content of a listed folder can differ
	Changed []string `json:"changed,omitempty"` // other processes may have changed them too
	Added   []string `json:"came,omitempty"`
	Gone    []string `json:"gone,omitempty"`
	More    int      `json:"more,omitempty"` // number of names that are not listed
}

// Key returns the key of the note that holds it.
func (MaskedFiles) Key() string { return "remit.unseen" }

// RevertNote is a note that the tool needs to revert the call.
type RevertNote struct {
	Key   string          `json:"key"`
	Value json.RawMessage `json:"value"`
}

// Done is a result, not yet verified.
type Done struct {
	Output       json.RawMessage `json:"output"`
	OutputDigest string          `json:"output_digest"`
	Recovered    bool            `json:"recovered,omitempty"` // recovered after a crash; the output was lost
	Posts        []Post          `json:"posts,omitempty"`

	// Delivered is the output after the filters: the caller got it. The tool's
	// Verify and Revert use Output.
	Delivered       json.RawMessage `json:"delivered,omitempty"`
	DeliveredDigest string          `json:"delivered_digest,omitempty"`
	DeliveredBy     []string        `json:"delivered_by,omitempty"` // the filters that changed the output, in order
	Undelivered     string          `json:"undelivered,omitempty"`  // why filters withheld the output: the call did not verify
	Ends            string          `json:"ends,omitempty"`         // as in Denied, stated after the call ran
}

// Post is the version that a change left, if Changed did not know it.
type Post struct {
	N    int          `json:"n"`
	Post effect.Token `json:"post"`
}

// Failed ends a call that has no effect left.
type Failed struct {
	Status string `json:"status"` // failed, cancelled, timeout, denied
	Stage  string `json:"stage,omitempty"`
	Why    string `json:"why"`
	Proof  string `json:"proof"` // reverted, no_effect, probe, pure, not_started

	// Access and Decision belong to a call that was denied while it ran: the
	// access that it asked for, and the decision.
	Access   *Access         `json:"access,omitempty"`
	Decision json.RawMessage `json:"decision,omitempty"`
	// Purpose is "apply" if the policy decided about known changes before they
	// were made: those of a program, or of a handle. Otherwise it is empty.
	Purpose string `json:"purpose,omitempty"`
}

// Spent reports whether the call may have had an effect before it ended without
// one. Its additions to the counters of its session then stay: a revert does
// not refill a budget.
func (f *Failed) Spent() bool {
	return f.Proof != "no_effect" && f.Proof != "probe" && f.Proof != "not_started"
}

// Unknown ends a call whose effect cannot be determined.
type Unknown struct {
	Status string `json:"status"` // unknown
	Why    string `json:"why"`
}

// Decided is a person's resolution of an in-doubt call. The first one counts.
type Decided struct {
	Applied bool   `json:"applied"` // its effect is present; otherwise it never happened, or is gone
	By      string `json:"by"`
	Why     string `json:"why"` // the evidence that the person checked
}

// Verified is the result of one probe.
type Verified struct {
	Phase    string          `json:"phase"` // call, recovery, revert
	Presence effect.Presence `json:"verdict"`
	OK       bool            `json:"ok"` // false: the call did not verify
	Findings []string        `json:"findings,omitempty"`
	Why      string          `json:"why,omitempty"`      // the violation, if OK is false
	Evidence string          `json:"evidence,omitempty"` // digest
}

// CallRef names a call and its transaction.
type CallRef struct {
	Txn  string `json:"txn"`
	Call string `json:"call"`
}

// Held is a call that waits until its transaction commits. It holds the later
// write-ahead record, and is durable before the caller learns that the call is
// held.
type Held struct {
	Started
	// Idempotent is set if the tool declares that one operation key has one
	// effect. A release with an unknown outcome may then be repeated under the
	// same key.
	Idempotent bool `json:"idempotent,omitempty"`
	// Masks and Requires are obligations of the decision: files that a program
	// does not see, and conditions that must hold when it runs.
	Masks    []string `json:"masks,omitempty"`
	Requires []string `json:"requires,omitempty"`
}

// Dropped says that a held call will not be released.
type Dropped struct {
	Cause string `json:"cause"`        // abort, savepoint, nest, revert, budget
	By    string `json:"by,omitempty"` // principal that asked for it; empty: the runtime
}
