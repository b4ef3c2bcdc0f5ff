package replay

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
)

// Report is what another policy would have decided.
type Report struct {
	Decisions   int           `json:"decisions"`
	Same        int           `json:"same"`
	Loosened    int           `json:"loosened"`  // the new policy is milder
	Tightened   int           `json:"tightened"` // the new policy is stricter
	NotByPolicy int           `json:"not_by_policy"`
	Prompts     Prompts       `json:"prompts"`
	Changes     []Change      `json:"changes"`
	Unused      []rego.Rule   `json:"unused"` // rules of the new policy that decided nothing of what was decided again
	Undecidable []Undecidable `json:"undecidable"`
}

// Undecided returns how many decisions could not be decided again.
func (r *Report) Undecided() (n int) {
	for _, u := range r.Undecidable {
		n += u.Count
	}
	return n
}

// Prompts counts the decisions that need a person.
type Prompts struct {
	Before int `json:"before"`
	After  int `json:"after"`
}

// Change is a group of decisions that change in the same way.
type Change struct {
	Before   string        `json:"before"` // effect: deny, ask, hold, allow
	After    string        `json:"after"`
	Tool     string        `json:"tool"`     // of a commit: empty
	Action   string        `json:"action"`   // or commit
	Resource string        `json:"resource"` // pattern that covers the resources of the group
	Was      []perm.Reason `json:"was"`      // reasons before
	Is       []perm.Reason `json:"is"`       // reasons after
	Count    int           `json:"count"`
	Calls    []string      `json:"calls"` // examples; of a commit, transactions
	// Partial is set if the call was denied at one access, so that the journal
	// does not have its other accesses. The new policy can still deny them.
	Partial bool `json:"partial,omitempty"`
}

// Loosens reports whether the new policy is milder.
func (c Change) Loosens() bool { return rank(c.After) > rank(c.Before) }

func rank(name string) int { return slices.Index([]string{"deny", "ask", "hold", "allow"}, name) }

// Undecidable is a group of decisions that cannot be decided again.
type Undecidable struct {
	Why   string   `json:"why"`
	Count int      `json:"count"`
	Calls []string `json:"calls"`
}

// builder collects a report.
type builder struct {
	o       Options
	r       Report
	changes map[string]*Change
	unknown map[string]*Undecidable
	used    map[string]bool // places of rules that decided
	decided int             // decisions that were decided again

	// Of the session that is read.
	current string
	labels  []string        // that the new policy gave it
	prompts map[string]bool // calls that count as prompts before, and after with a prefix
}

// session begins another session.
func (b *builder) session(id string) {
	if b.current != id {
		b.current, b.labels, b.prompts = id, nil, map[string]bool{}
	}
}

// labelled returns a decision with the labels that the new policy gave the
// session, beside the recorded ones.
func (b *builder) labelled(d agent.RecordedDecision) agent.RecordedDecision {
	if len(b.labels) == 0 {
		return d
	}
	d.Requests = slices.Clone(d.Requests)
	for i := range d.Requests {
		all := slices.Concat(d.Requests[i].Session.Labels, b.labels)
		slices.Sort(all)
		d.Requests[i].Session.Labels = slices.Compact(all)
	}
	return d
}

// prompt counts a call once, also if it is decided again after its approval.
func (b *builder) prompt(n *int, key string) {
	if !b.prompts[key] {
		b.prompts[key] = true
		*n++
	}
}

func newBuilder(o Options) *builder {
	return &builder{o: o, changes: map[string]*Change{}, unknown: map[string]*Undecidable{}, used: map[string]bool{}}
}

func (b *builder) cannot(d agent.RecordedDecision, why string) {
	u := b.unknown[why]
	if u == nil {
		u = &Undecidable{Why: why, Calls: []string{}}
		b.unknown[why] = u
	}
	u.Count++
	u.Calls = example(u.Calls, idOf(d), b.o.Examples)
}

func example(calls []string, call string, most int) []string {
	if len(calls) < most && !slices.Contains(calls, call) {
		calls = append(calls, call)
	}
	return calls
}

// idOf returns the ID of the call that was decided, or of the transaction whose
// commit was.
func idOf(d agent.RecordedDecision) string { return cmp.Or(d.Call, d.Txn) }

// compare notes one decision that was decided again.
func (b *builder) compare(d agent.RecordedDecision, before, after verdict) {
	for _, r := range after.reasons {
		b.used[r.At] = true
	}
	b.decided++
	if after.effect != perm.Deny {
		b.labels = append(b.labels, after.labels...)
	}
	if before.effect == perm.Ask {
		b.prompt(&b.r.Prompts.Before, idOf(d))
	}
	if after.effect == perm.Ask {
		b.prompt(&b.r.Prompts.After, "after "+idOf(d))
	}
	if before.effect == after.effect {
		b.r.Same++
		return
	}
	if after.effect > before.effect {
		b.r.Loosened++
	} else {
		b.r.Tightened++
	}
	access := d.Requests[max(before.at, after.at)].Access
	c := Change{
		Before: before.effect.String(), After: after.effect.String(), Tool: d.Requests[0].Tool.Name, Action: string(access.Action), Resource: pattern(access.Resource),
		Was: before.reasons, Is: after.reasons, Partial: d.Stage == "policy",
	}
	if d.Call == "" {
		c.Action, c.Resource = string(perm.PurposeCommit), ""
	}
	key := c.key()
	group := b.changes[key]
	if group == nil {
		group = &c
		b.changes[key] = group
	}
	group.Count++
	group.Calls = example(group.Calls, idOf(d), b.o.Examples)
	group.Partial = group.Partial || c.Partial
}

// key is equal for changes of one group: the same effects by the same rules, the
// same tool, action and pattern.
func (c *Change) key() string {
	parts := []string{c.Before, c.After, c.Tool, c.Action, c.Resource}
	for _, side := range [][]perm.Reason{c.Was, c.Is} {
		var places []string
		for _, r := range side {
			places = append(places, cmp.Or(r.At, r.Text))
		}
		slices.Sort(places)
		parts = append(parts, strings.Join(slices.Compact(places), "\x01"))
	}
	return strings.Join(parts, "\x00")
}

// pattern returns a text that covers a resource and those near it: the first
// folder of a file, the host of a URL.
func pattern(r perm.ResourceFacts) string {
	switch {
	case r.Kind == "file" && strings.Contains(r.Path, "/"):
		first, _, _ := strings.Cut(r.Path, "/")
		return "file://" + r.Root + "/" + path.Join(first, "**")
	case r.Kind == "file":
		return "file://" + r.Root + "/*"
	case r.Host != "":
		return r.Scheme + "://" + r.Host + "/**"
	default:
		return r.Text
	}
}

// report returns the result, with the most frequent groups first.
func (b *builder) report() *Report {
	r := b.r
	r.Changes, r.Undecidable, r.Unused = []Change{}, []Undecidable{}, []rego.Rule{}
	for _, c := range b.changes {
		r.Changes = append(r.Changes, *c)
	}
	slices.SortFunc(r.Changes, func(x, y Change) int { return cmp.Or(y.Count-x.Count, strings.Compare(x.key(), y.key())) })
	for _, why := range slices.Sorted(maps.Keys(b.unknown)) {
		r.Undecidable = append(r.Undecidable, *b.unknown[why])
	}
	for _, rule := range b.o.New.Rules() {
		if b.decided > 0 && !b.used[rule.At] && slices.Contains([]string{"deny", "ask", "hold", "allow", "limit", "ask_commit", "deny_commit"}, rule.Set) {
			r.Unused = append(r.Unused, rule)
		}
	}
	return &r
}
