package perm

import (
	"encoding/json"
	"time"
)

// Purpose is why a decision is asked for.
type Purpose string

// The purposes.
const (
	PurposeRun    Purpose = "run"    // before a call, and for each dynamic access inside it
	PurposeApply  Purpose = "apply"  // before the change set of a sandboxed program is applied
	PurposeVerify Purpose = "verify" // after a call: which postconditions are broken
	PurposeRevert Purpose = "revert" // before an agent takes a change of a call back
	PurposeList   Purpose = "list"   // which tools are shown
)

// Request is the input document of a policy: everything a rule can read. Its
// JSON schema is InputSchema; documents and schema are held together by a test.
// Time is given, never read from a clock inside a policy, so that a decision
// can be replayed.
type Request struct {
	Principal Principal       `json:"principal"`
	Session   SessionFacts    `json:"session"`
	Txn       TxnFacts        `json:"txn"`
	Tool      ToolFacts       `json:"tool"`
	Call      CallFacts       `json:"call"`
	Access    AccessFacts     `json:"access"`
	Purpose   Purpose         `json:"purpose"`
	Output    json.RawMessage `json:"output,omitempty"`  // purpose verify: the tool's result
	Changes   []ChangeFacts   `json:"changes,omitempty"` // purpose apply and verify
	Time      time.Time       `json:"time"`              // UTC, RFC 3339
}

// SessionFacts is what a session has done so far.
type SessionFacts struct {
	ID     string   `json:"id"`
	Labels []string `json:"labels"`
	// Requires is what results have raised: each call must have it, as if the policy required it. It is never lowered.
	Requires []string              `json:"requires,omitempty"`
	Tools    map[string]ToolCounts `json:"tools"`            // by tool name
	Recent   []RecentCall          `json:"recent"`           // the last 32 calls, oldest first
	Client   *ClientFacts          `json:"client,omitempty"` // always there when a runtime asks
}

// ClientFacts is who a session's tools and results are shown to; the host program vouches for it. The zero value is the
// strictest: nothing is known of it.
type ClientFacts struct {
	Surface      string   `json:"surface"`      // the kind of session, in words of the host, such as terminal or chat
	Model        string   `json:"model"`        // its name
	Capabilities []string `json:"capabilities"` // of the model, such as vision or long_context
	// ProviderTrust is how far the provider of the model is trusted with what tools return, in thousandths: 0 is not at all, and
	// counts also where nobody has said a valid number; 1000 is wholly.
	ProviderTrust int `json:"confidence"`
	// Selected are the names and tags of the tools that the user has switched on; nil: nobody was asked, and all are.
	Selected []string `json:"selected,omitzero"`
	Disabled []string `json:"off"` // names and tags of tools that are switched off
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

// RecentCall is one line of a session's history.
type RecentCall struct {
	Tool   string `json:"tool"`
	Status string `json:"status"`
}

// TxnFacts is the transaction that the call belongs to.
type TxnFacts struct {
	ID    string `json:"id"`
	Calls int    `json:"calls"` // calls that reached intend so far
	Depth int    `json:"depth"` // 0 for a transaction that is not nested
}

// ToolFacts is the tool as declared.
type ToolFacts struct {
	Name        string   `json:"name"`
	Version     string   `json:"version"`
	Tags        []string `json:"tags"`
	Digest      string   `json:"digest"`
	Provenance  string   `json:"provenance"` // where the tool comes from, such as builtin or mcp
	CanVerify   bool     `json:"can_verify"`
	CanRevert   bool     `json:"can_revert"`
	Confinement string   `json:"confinement"`          // sandbox, handles, trusted
	Coverage    string   `json:"coverage"`             // confined, observed, declared
	Destination string   `json:"destination"`          // none, configured, third_party, model_chosen
	Grade       string   `json:"grade"`                // ungraded, not_undoable, compensable, crash_undoable, read_only
	Confidence  int      `json:"confidence,omitempty"` // that the tool wants of a session's client, in thousandths
	Idempotent  bool     `json:"idempotent"`           // the same call twice has one effect
	Risk        Risk     `json:"risk"`                 // as its author judges it
	Approval    bool     `json:"approval"`             // its author advises that a person approves each call
}

// Risk is how much harm a call can do, as the author of its tool judges it.
type Risk string

// The risks, mildest first.
const (
	RiskLow        Risk = "low"
	RiskMedium     Risk = "medium"
	RiskHigh       Risk = "high"
	RiskUndeclared Risk = "undeclared" // the author says nothing
)

// Valid reports whether r is one of the declared risks.
func (r Risk) Valid() bool { return r.rank() > 0 && r != RiskUndeclared }

// Max returns the worse of two risks. The empty one is undeclared, which is the worst.
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

// CallFacts is the call as asked for. Args is the canonical input after schema
// validation: an object, or a string for a free-form tool.
type CallFacts struct {
	ID          string          `json:"id"`
	Args        json.RawMessage `json:"args"`
	EffectClass string          `json:"effect_class"` // pure, reversible, compensable, deferrable, pivot
	Declared    bool            `json:"declared"`     // false: the tool declared no effect class and counts as pivot
	Batch       BatchFacts      `json:"batch"`
	Script      *ScriptFacts    `json:"script,omitempty"` // of a tool whose calls run one
	URLs        []URLFacts      `json:"urls,omitzero"`    // that the arguments name, those that were not given first; nil: nobody looked
}

// URLFacts is a URL that a call names. It was given where whoever is behind the session named it, or a result of a call of the session
// that did not merely repeat what a call had named.
type URLFacts struct {
	URL          string `json:"url"` // canonical, as far as it is a URL; else as it stands there, cut
	UserProvided bool   `json:"given"`
}

// BatchFacts is the place of a call among those asked for together.
type BatchFacts struct {
	Index int `json:"index"` // from 0
	Count int `json:"count"` // 1 for a single call
}

// AccessFacts is the one access that this request is about.
type AccessFacts struct {
	Action       Action        `json:"action"`
	Resource     ResourceFacts `json:"resource"`
	Method       string        `json:"method,omitempty"` // HTTP method of a connect
	Dynamic      bool          `json:"dynamic"`          // asked for while the tool runs
	UserProvided *bool         `json:"given,omitempty"`  // of a connect to a URL: one was given that leads there, whatever its query; nil: nobody looked
	Git          *GitFacts     `json:"git,omitempty"`    // purpose apply, of programs and file tools: the change makes git run code later; nil: git runs nothing by it
}

// GitFacts describes a change of a program or a file tool that makes git run code
// later, or lets another folder decide what git runs.
type GitFacts struct {
	// Kind is config, hook (a file that git runs), attributes (info/attributes), link (leads
	// git to another folder), todo (a stopped rebase with exec lines) or repository (a HEAD
	// that makes a folder a repository, or makes it none).
	Kind string `json:"kind"`
	// Keys are the configuration keys whose values change, in lower case, with * for a
	// subsection: "branch.*.merge". "?" means that the file cannot be read.
	Keys []string `json:"keys,omitempty"`
	// New is true if there was no such configuration before.
	New bool `json:"new,omitempty"`
}

// ResourceFacts is a resource in parsed parts. Text and Kind are always there,
// the rest as the kind has it.
type ResourceFacts struct {
	Kind      string   `json:"kind"` // file, https, http, exec, db, secret, tool, mcp
	Text      string   `json:"text"` // canonical text
	Root      string   `json:"root,omitempty"`
	Path      string   `json:"path,omitempty"` // relative, decoded
	Segments  []string `json:"segments,omitempty"`
	Name      string   `json:"name,omitempty"` // last segment, or the secret's or tool's name
	Ext       string   `json:"ext,omitempty"`  // with its dot, lower case
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

// ChangeFacts is one change of a call, or of a sandboxed program's change set.
type ChangeFacts struct {
	Resource ResourceFacts `json:"resource"`
	Kind     string        `json:"kind"`             // create, write, delete, mkdir, ...
	Before   string        `json:"before,omitempty"` // token, "" when absent
	After    string        `json:"after,omitempty"`
	Git      *GitFacts     `json:"git,omitempty"` // purpose apply

	// Text is the content that a file has after the call, for purpose verify, if the policy names it. It is empty if the
	// content is no text or a mask hides it, and nil if there is no file. Values of secrets are replaced.
	Text      *string `json:"text,omitempty"`
	MediaType string  `json:"media_type,omitempty"` // text/plain, application/octet-stream, or inode/other for what is no file
	Size      int     `json:"size,omitempty"`       // bytes of the content, if Text has all of it
	Cut       bool    `json:"cut,omitempty"`        // the content goes on behind Text
	Binary    bool    `json:"binary,omitempty"`     // the content is no text
	Masked    bool    `json:"masked,omitempty"`     // a mask of the policy hides the content
}
