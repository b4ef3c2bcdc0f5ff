package perm

import (
	"encoding/json"
	"time"

	"github.com/remit-dev/remit/history"
)

// Purpose is the reason for a policy decision.
type Purpose string

// The purposes of a decision.
const (
	PurposeRun    Purpose = "run"    // before a call, and for each dynamic access inside it
	PurposeApply  Purpose = "apply"  // before the runtime applies the change set of a sandboxed program
	PurposeVerify Purpose = "verify" // after a call: evaluates the postconditions
	PurposeRevert Purpose = "revert" // before an agent reverts a change of a call
	PurposeMerge  Purpose = "merge"  // before such a revert keeps what another process changed in the file
	PurposeList   Purpose = "list"   // selects the visible tools
	PurposeCommit Purpose = "commit" // before a transaction commits; there is no call, tool and access
)

// Request is the input document of a policy: everything that a rule can read.
// Its JSON schema is InputSchema, and a test compares the two. Time is an
// input, never read from a clock inside a policy, so that a decision can be
// replayed.
type Request struct {
	Principal Principal       `json:"principal"`
	Session   SessionFacts    `json:"session"`
	Txn       TxnFacts        `json:"txn"`
	Tool      ToolFacts       `json:"tool"`
	Call      CallFacts       `json:"call"`
	Access    AccessFacts     `json:"access"`
	Purpose   Purpose         `json:"purpose"`
	Output    json.RawMessage `json:"output,omitempty"`  // purpose verify: the result of the tool
	Changes   []ChangeFacts   `json:"changes,omitempty"` // purposes apply and verify
	Time      time.Time       `json:"time"`              // UTC, RFC 3339
}

// SessionFacts describes what a session has done so far.
type SessionFacts struct {
	ID     string   `json:"id"`
	Labels []string `json:"labels"`
	// Requires holds requirements that results have added. Each call must meet
	// them, as if the policy required them. They are never removed.
	Requires []string     `json:"requires,omitempty"`
	Tools    CountsByTool `json:"tools"`
	Recent   []RecentCall `json:"recent"`           // the last 32 calls, oldest first
	Client   *ClientFacts `json:"client,omitempty"` // always present in a request of a runtime
	// Data is a JSON object with facts about the task of the session. The host
	// program vouches for it, and it never changes. Nil: none.
	Data json.RawMessage `json:"data,omitempty"`
	// History lists the calls that ended, by their ends. Only tests and
	// evaluations of a policy have it. A runtime has too many calls for a list.
	History []history.Call `json:"history,omitzero"`
	// Past answers what happened in the session before the decision. Nil:
	// History answers; without it, rules that ask are errors.
	Past history.Source `json:"-"`
}

// ClientFacts describes the client that sees a session's tools and results. The
// host program vouches for it. The zero value is the strictest: nothing is
// known about the client.
type ClientFacts struct {
	Surface      string   `json:"surface"`      // kind of session, in words of the host, such as terminal or chat
	Model        string   `json:"model"`        // name of the model
	Capabilities []string `json:"capabilities"` // capabilities of the model, such as vision or long_context
	// ProviderTrust is how far the host trusts the provider of the model with
	// the results of tools, in thousandths. 0 is no trust, and replaces a
	// missing or invalid number. 1000 is full trust.
	ProviderTrust int `json:"confidence"`
	// Selected holds the names and tags of the tools that the user has enabled.
	// Nil: the user was not asked, and all are enabled.
	Selected []string `json:"selected,omitzero"`
	Disabled []string `json:"off"` // names and tags of disabled tools
}

// ToolCounts counts the calls of one tool in a session.
type ToolCounts struct {
	Counts
	Windows map[string]Counts `json:"windows,omitempty"` // "1m", "1h", "24h"
}

// Counts is one set of counts and named sums.
type Counts struct {
	Run      int                    `json:"run"`
	Denied   int                    `json:"denied"`
	Failed   int                    `json:"failed"`
	InFlight int                    `json:"in_flight"`
	Sums     map[string]json.Number `json:"sums,omitempty"`
}

// RecentCall is one entry of a session's history.
type RecentCall struct {
	Tool   string `json:"tool"`
	Status string `json:"status"`
}

// TxnFacts is the transaction that the call belongs to.
type TxnFacts struct {
	ID    string `json:"id"`
	Calls int    `json:"calls"` // calls that have reached step intend so far
	Depth int    `json:"depth"` // 0 for a transaction that is not nested

	// Effects are what a commit makes permanent and what it releases, for
	// purpose commit: at most 256, those that a revert cannot take back first.
	Effects    []EffectFacts `json:"effects,omitzero"`
	EffectsCut bool          `json:"effects_cut,omitempty"` // there are more than Effects holds
	Totals     *EffectTotals `json:"totals,omitempty"`      // of all effects, also those that were cut
}

// EffectFacts is one effect of a transaction that commits.
type EffectFacts struct {
	// Kind is create, write or delete of a resource, the difference between the
	// beginning and the end of the transaction. It is call for effects that no
	// change describes, connect for a host that a program reached, and release
	// for a held call that the commit runs.
	Kind     string        `json:"kind"`
	Resource ResourceFacts `json:"resource"`
	Class    string        `json:"class"`    // the least revertible of the calls: reversible, compensable, deferrable, pivot
	Coverage string        `json:"coverage"` // the weakest of the calls: confined, observed, declared
	Tool     string        `json:"tool"`     // of the last call
	Call     string        `json:"call"`     // the last call
	Unknown  bool          `json:"unknown"`  // the outcome of a call cannot be determined
}

// EffectTotals counts the effects of a transaction, and by class its calls with
// an effect.
type EffectTotals struct {
	Effects     int `json:"effects"`
	Reversible  int `json:"reversible"`
	Compensable int `json:"compensable"`
	Deferrable  int `json:"deferrable"`
	Pivot       int `json:"pivot"`
	Unknown     int `json:"unknown"` // calls whose outcome cannot be determined
	Held        int `json:"held"`    // calls that the commit releases
}

// ToolFacts describes the declared tool.
type ToolFacts struct {
	Name        string   `json:"name"`
	Version     string   `json:"version"`
	Tags        []string `json:"tags"`
	Digest      string   `json:"digest"`
	Provenance  string   `json:"provenance"` // origin of the tool, such as builtin or mcp
	CanVerify   bool     `json:"can_verify"`
	CanRevert   bool     `json:"can_revert"`
	Confinement string   `json:"confinement"`          // sandbox, handles, trusted
	Coverage    string   `json:"coverage"`             // confined, observed, declared
	Destination string   `json:"destination"`          // none, configured, third_party, model_chosen
	Grade       string   `json:"grade"`                // ungraded, not_undoable, compensable, crash_undoable, read_only
	Confidence  int      `json:"confidence,omitempty"` // provider trust that the tool requires of a session's client, in thousandths
	Idempotent  bool     `json:"idempotent"`           // repeating the call has no further effect
	Risk        Risk     `json:"risk"`                 // judged by the author
	Approval    bool     `json:"approval"`             // the author advises approval of each call
}

// Risk is the harm that a call can do, as judged by the author of its tool.
type Risk string

// The risks, mildest first.
const (
	RiskLow        Risk = "low"
	RiskMedium     Risk = "medium"
	RiskHigh       Risk = "high"
	RiskUndeclared Risk = "undeclared" // not stated by the author
)

// Valid reports whether r is one of the declared risks.
func (r Risk) Valid() bool { return r.rank() > 0 && r != RiskUndeclared }

// Max returns the worse of two risks. The empty risk is undeclared, which is
// the worst.
func (r Risk) Max(other Risk) Risk {
	if other.rank() > r.rank() {
		return other
	}
	return r
}

func (r Risk) rank() int {
	switch r {
	case RiskLow:
		return 1
	case RiskMedium:
		return 2
	case RiskHigh:
		return 3
	case RiskUndeclared, "":
		return 4
	default:
		return 0
	}
}

// CallFacts is the requested call. Args is the canonical input after schema
// validation: an object, or a string for a free-form tool.
type CallFacts struct {
	ID          string          `json:"id"`
	Args        json.RawMessage `json:"args"`
	EffectClass string          `json:"effect_class"` // pure, reversible, compensable, deferrable, pivot
	Declared    bool            `json:"declared"`     // false: the tool declared no effect class, so it is a pivot
	Batch       BatchFacts      `json:"batch"`
	Script      *ScriptFacts    `json:"script,omitempty"`     // for a tool whose calls run a script
	Prompt      *PromptFacts    `json:"prompt,omitempty"`     // for a call that follows a prompt of a coding agent
	URLs        []URLFacts      `json:"urls,omitzero"`        // URLs in the arguments, those that are not user-provided first; nil: unknown
	Values      []ValueFacts    `json:"values,omitzero"`      // where the values of the arguments were seen; nil: unknown
	ValuesCut   bool            `json:"values_cut,omitempty"` // Values or their Identifiers are not all
}

// ValueFacts is a value of the arguments that has no parts, and where the session
// saw it before.
type ValueFacts struct {
	Pointer string `json:"pointer"` // JSON pointer in the arguments
	Role    string `json:"role"`    // authority, content, selector, as the tool declares
	// Origins are person, config, trusted and untrusted. None: the model made
	// the value.
	Origins     []string          `json:"origins"`
	Short       bool              `json:"short"`                 // so short that many texts have it by accident
	Identifiers []IdentifierFacts `json:"identifiers,omitempty"` // in a longer text
}

// IdentifierFacts is a part of a text that names a person, a place or an
// account elsewhere.
type IdentifierFacts struct {
	Text    string   `json:"text"`
	Kind    string   `json:"kind"` // url, email, account
	Origins []string `json:"origins"`
}

// PromptFacts is the prompt that a call of a coding agent follows. The client
// vouches for it.
type PromptFacts struct {
	Client string `json:"client"`
	ID     string `json:"id"`   // the client's ID of the prompt
	Text   string `json:"text"` // its first words; empty: unknown, or erased
}

// URLFacts is a URL in the arguments of a call. It is user-provided if the user
// named it. It also is if a result of an earlier call of the session contains
// it and does not merely repeat a URL from the arguments of a call.
type URLFacts struct {
	URL          string `json:"url"` // canonical if the text is a URL, else the text itself, truncated
	UserProvided bool   `json:"user_provided"`
}

// BatchFacts is the position of a call in its batch.
type BatchFacts struct {
	Index int `json:"index"` // first is 0
	Count int `json:"count"` // 1 for a single call
}

// AccessFacts is the access that this request decides.
type AccessFacts struct {
	Action       Action        `json:"action"`
	Resource     ResourceFacts `json:"resource"`
	Method       string        `json:"method,omitempty"`        // HTTP method of a connect
	Dynamic      bool          `json:"dynamic"`                 // requested while the tool runs
	UserProvided *bool         `json:"user_provided,omitempty"` // for a connect to a URL: a user-provided URL leads there, with any query; nil: unknown
	Git          *GitFacts     `json:"git,omitempty"`           // purpose apply, for programs and file tools: the change lets git run code later; nil: it does not
}

// GitFacts describes a change of a program or a file tool that makes git run
// code later, or that changes which folder decides what git runs.
type GitFacts struct {
	// Kind is config, hook (a file that git runs), attributes
	// (info/attributes), link (leads git to another folder), todo (a stopped
	// rebase with exec lines) or repository. A change of kind repository adds
	// or removes the HEAD that makes a folder a repository.
	Kind string `json:"kind"`
	// Keys are the configuration keys whose values change, in lower case, with
	// * for a subsection: "branch.*.merge". "?" means that the file cannot be
	// read.
	Keys []string `json:"keys,omitempty"`
	// New is true if the configuration did not exist before.
	New bool `json:"new,omitempty"`
}

// ResourceFacts is a resource in parsed parts. Text and Kind are always set. The
// kind determines which other parts are set.
type ResourceFacts struct {
	Kind      string   `json:"kind"` // file, https, http, exec, db, secret, tool, mcp; other: of a change only
	Text      string   `json:"text"` // canonical text
	Root      string   `json:"root,omitempty"`
	Path      string   `json:"path,omitempty"` // relative, decoded
	Segments  []string `json:"segments,omitempty"`
	Name      string   `json:"name,omitempty"` // last segment, or the secret's or tool's name
	Ext       string   `json:"ext,omitempty"`  // from the last dot of the name, in lower case
	Scheme    string   `json:"scheme,omitempty"`
	Host      string   `json:"host,omitempty"`
	Port      int      `json:"port,omitempty"`
	Database  string   `json:"database,omitempty"`
	Table     string   `json:"table,omitempty"`
	Statement string   `json:"statement,omitempty"`
	Program   string   `json:"program,omitempty"`
	Argv      []string `json:"argv,omitempty"`
	Server    string   `json:"server,omitempty"`
	Tool      string   `json:"tool,omitempty"`
}

// ChangeFacts is one change of a call, or one in the change set of a sandboxed
// program.
type ChangeFacts struct {
	Resource ResourceFacts `json:"resource"`
	Kind     string        `json:"kind"`             // create, write, delete, mkdir, ...
	Before   string        `json:"before,omitempty"` // version token, "" if absent
	After    string        `json:"after,omitempty"`
	Git      *GitFacts     `json:"git,omitempty"` // purpose apply

	// Text is the content of a file after the call, for purpose verify, if the
	// policy reads it. It is empty if the content is not text or a mask hides
	// it, and nil if there is no file. Secret values are replaced.
	Text      *string `json:"text,omitempty"`
	MediaType string  `json:"media_type,omitempty"` // text/plain, application/octet-stream, or inode/other for a resource that is not a file
	Size      int     `json:"size,omitempty"`       // bytes of the content, if Text is complete
	Cut       bool    `json:"cut,omitempty"`        // Text is truncated
	Binary    bool    `json:"binary,omitempty"`     // the content is not text
	Masked    bool    `json:"masked,omitempty"`     // a mask of the policy hides the content
}
