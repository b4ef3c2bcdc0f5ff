package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/remit-dev/remit/internal/callstate"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/toolaccess"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/policies"
	"github.com/remit-dev/remit/provenance"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/tool"
)

// permitted is an admitted call with every access allowed. filter accepts
// nothing else.
type permitted struct {
	admitted
	key      string
	decision perm.Decision
	approval *record.Approval
	held     bool // the call waits for the commit
}

// counts reports whether the call raises a counter of its session that must
// survive a crash: a sum, the number of calls of a budget, or the number of
// calls that its grant allows.
func (l *Pipeline) counts(p permitted) bool {
	return l.p.Grant.Bounded() || len(spec(p.tool).Counters) > 0 || len(p.decision.Limits()) > 0 || p.released != nil
}

// permit is step 2: it checks each exact access against the session's grant and
// the policy, and obtains the approvals that the policy asks for. A denial ends
// the call before its code runs.
func (l *Pipeline) permit(ctx context.Context, a admitted) (permitted, *tool.Outcome) {
	if a.seq == 0 { // otherwise a filter replaced the input of a call that has its number
		a.seq = l.p.Facts.Next()
	}
	a.look(l)
	p := permitted{admitted: a}
	p.key = operationKey(l.p.Recorder.Txn(), p.seq, a.tool.Digest(), a.input)
	asked := a.asked()
	if why := a.tool.HiddenReason(l.p.Client); why != "" {
		err := &callstate.DeniedError{Access: asked[0], Stage: "grant", Why: "the session does not see the tool: " + why}
		return p, l.denied(ctx, p, err)
	}
	decision, err := l.decide(ctx, a, asked, false)
	p.decision, p.held = decision, needsHold(decision)
	waits := decision.Effect() == perm.Ask && l.p.Approver == nil && l.p.Wait
	if err == nil {
		err = l.unkept(a, asked[0], decision, waits, p.held)
	}
	var end *tool.Outcome
	switch {
	case err != nil:
	case p.waitedInside():
		p, end, err = l.resumePreviewed(ctx, p, asked)
	case decision.Effect() == perm.Ask:
		p, end, err = l.approved(ctx, p, asked)
	case a.resume != nil:
		err = l.checkPriorAnswer(p, asked)
	}
	if end != nil {
		return p, end
	}
	if err == nil {
		err = l.label(ctx, a, asked[0], decision)
	}
	if err != nil {
		return p, l.denied(ctx, p, err)
	}
	return p, nil
}

// asked returns the accesses to authorize before the call: its exact accesses,
// or the call itself.
func (a admitted) asked() []perm.ResourceAccess {
	if len(a.exact) == 0 {
		return []perm.ResourceAccess{toolaccess.Call(a.tool.Name())}
	}
	return a.exact
}

// operationKey returns the operation key of a call. It contains no attempt
// number, so a repetition of the same call has the same key.
func operationKey(txn string, seq int, toolDigest string, input []byte) string {
	var number [20]byte // on the stack, like the next
	var digest [80]byte
	return string(canon.Sum("remit/operation-key/v1", []byte(txn), strconv.AppendInt(number[:0], int64(seq), 10), append(digest[:0], toolDigest...), input))
}

// decide authorizes each access and returns the strictest decision, with the
// reasons of all decisions that gave it. A denial is a DeniedError. An ask
// covers all accesses of the call together, and so does a hold, also beside an
// ask.
func (l *Pipeline) decide(ctx context.Context, a admitted, asked []perm.ResourceAccess, dynamic bool) (perm.Decision, error) {
	if len(asked) == 1 { // as for most calls
		d, err := l.decideOne(ctx, a, asked[0], dynamic)
		if err != nil {
			l.redactRemaining(ctx, a, asked, dynamic)
			return perm.Decision{}, err
		}
		return d, nil
	}
	answers, err := l.decideEach(ctx, a, asked, dynamic)
	if err != nil {
		return perm.Decision{}, err
	}
	return strictest(answers), nil
}

// decideEach authorizes the accesses in order and stops at the first denial.
func (l *Pipeline) decideEach(ctx context.Context, a admitted, asked []perm.ResourceAccess, dynamic bool) ([]perm.Decision, error) {
	answers := make([]perm.Decision, 0, len(asked))
	for i, access := range asked {
		d, err := l.decideOne(ctx, a, access, dynamic)
		if err != nil {
			l.redactRemaining(ctx, a, asked[i:], dynamic)
			return nil, err
		}
		answers = append(answers, d)
	}
	return answers, nil
}

func (l *Pipeline) decideOne(ctx context.Context, a admitted, access perm.ResourceAccess, dynamic bool) (perm.Decision, error) {
	deny := func(stage string, d perm.Decision, why string) (perm.Decision, error) {
		return d, &callstate.DeniedError{Access: access, Stage: stage, Decision: d, Why: why}
	}
	if err := l.p.Grant.Check(ctx); err != nil {
		return deny("grant", perm.Decision{}, err.Error())
	}
	known := l.resolve(access)
	if !known.granted {
		return deny("grant", perm.Decision{}, "the session was not granted to "+access.String())
	}
	req := l.requestFor(a, access, known.facts, dynamic)
	if err := l.p.Host.Point(ctx, "tool.decide"); err != nil {
		return deny("policy", perm.Decision{}, "the decision was interrupted: "+err.Error())
	}
	d, err := l.ask(ctx, a.tool, &req)
	if a.seen != nil && !dynamic {
		a.seen.note(req)
	}
	d = l.requiring(d)
	details := d.Details()
	a.redaction.add(details.Redact)
	switch {
	case err != nil:
		return perm.Decision{}, &callstate.DeniedError{Access: access, Stage: "policy", Why: "the policy could not decide: " + err.Error(), PolicyFailed: true, Timeout: errors.Is(err, perm.ErrTimeout)}
	case needsHold(d) && a.cannotWait(dynamic) != "":
		return deny("policy", d, "the policy holds the call until commit, and "+a.cannotWait(dynamic)+": "+reasonText(d))
	case d.Effect() == perm.Deny:
		return deny("policy", d, reasonText(d)+unmatched(a, access, d))
	}
	for _, limit := range details.Limits {
		over, err := l.over(ctx, a, limit, dynamic)
		if err != nil {
			return perm.Decision{}, &callstate.DeniedError{Access: access, Stage: "policy", Why: "the budget could not be looked at: " + err.Error(), PolicyFailed: true}
		}
		if over != "" {
			refused := refusedBy(access, d, perm.Reason{Text: over, At: limit.At, Set: "limit"})
			return refused.Decision, refused
		}
	}
	if unmet, is := unmetRequirement(a.tool, a.class, details.Requires); is {
		refused := refusedBy(access, d, unmet)
		return refused.Decision, refused
	}
	return d, nil
}

// ask evaluates the policy for one request, and adds to it what the policy reads
// of URLs and values. A panic of the engine is an error.
func (l *Pipeline) ask(ctx context.Context, t tool.Tool, req *perm.Request) (d perm.Decision, err error) {
	defer func() {
		if p := recover(); p != nil {
			d, err = perm.Decision{}, fmt.Errorf("the engine panicked (%T)", p)
		}
	}()
	if err = l.addUserURLs(ctx, req); err != nil {
		return perm.Decision{}, err
	}
	if err = l.addValues(ctx, t, req); err != nil {
		return perm.Decision{}, err
	}
	return l.engine().Decide(ctx, *req)
}

func (l *Pipeline) engine() perm.Engine {
	if l.p.Engine == nil {
		return perm.EngineFunc(nil)
	}
	return l.p.Engine
}

// request builds the policy's input for one access.
func (l *Pipeline) request(a admitted, access perm.ResourceAccess, dynamic bool) (perm.Request, error) {
	r, err := perm.ParseResource(access.Resource)
	if err != nil {
		return perm.Request{}, err
	}
	return l.requestFor(a, access, r.Facts(), dynamic), nil
}

// resolvedAccess is an access with what follows from its text and the grant,
// neither of which changes.
type resolvedAccess struct {
	access  perm.ResourceAccess
	facts   perm.ResourceFacts
	granted bool
}

// resolve parses the resource of an access and looks it up in the grant. It
// remembers the last access to a tool itself: most calls that only read have no
// other.
func (l *Pipeline) resolve(access perm.ResourceAccess) *resolvedAccess {
	last := l.lastAccess.Load()
	if last != nil && last.access == access {
		return last
	}
	known := &resolvedAccess{access: access}
	if r, err := perm.ParseResource(access.Resource); err == nil {
		known.facts, known.granted = r.Facts(), l.p.Grant.AllowsResource(access.Action, r, access.Method)
	}
	if access.Action == perm.Call {
		l.lastAccess.Store(known)
	}
	return known
}

// requestFor is request for an access whose resource is parsed. An engine that
// says that it reads only shares the memory of the call; others get copies.
func (l *Pipeline) requestFor(a admitted, access perm.ResourceAccess, facts perm.ResourceFacts, dynamic bool) perm.Request {
	if dynamic || a.seen == nil {
		a.seen = l.nowFor(a)
	}
	purpose := perm.PurposeRun
	facts.Argv = access.Argv.List()
	if a.program != nil {
		purpose = perm.PurposeApply
	}
	s := spec(a.tool)
	batch := a.batch
	if batch.Count == 0 {
		batch.Count = 1
	}
	principal, args := l.asPrincipal, json.RawMessage(a.input)
	if !l.readsOnly() {
		principal, args, facts.Segments = principal.Clone(), slices.Clone(args), slices.Clone(facts.Segments)
	}
	return perm.Request{
		Principal: principal, Session: l.session(a), Txn: a.seen.txn,
		Tool: a.tool.Facts(),
		Call: perm.CallFacts{
			ID: a.id, Args: args,
			EffectClass: string(a.class), Declared: s.EffectClass != "", Batch: batch, Script: a.script, Prompt: l.prompt(),
			Values: a.seen.values, ValuesCut: a.seen.valuesCut,
		},
		Access:  perm.AccessFacts{Action: access.Action, Resource: facts, Method: access.Method, Dynamic: dynamic, Git: a.git[access.Resource]},
		Purpose: purpose, Changes: a.program, Time: a.seen.time,
	}
}

// prompt returns what a policy sees of the prompt.
func (l *Pipeline) prompt() *perm.PromptFacts {
	if l.p.Prompt == nil || l.readsOnly() {
		return l.p.Prompt
	}
	own := *l.p.Prompt
	return &own
}

// readsOnly reports whether the engine says that it neither changes nor keeps
// what a request refers to.
func (l *Pipeline) readsOnly() bool {
	e, says := l.p.Engine.(interface{ ReadsOnly() bool })
	return says && e.ReadsOnly()
}

// session returns what a policy sees of the session. The counts are those of
// the moment when the call was counted, so they are the same for all its
// accesses.
func (l *Pipeline) session(a admitted) perm.SessionFacts {
	facts := a.counted
	facts.Labels, facts.Requires = slices.Clone(a.seen.labels), slices.Clone(a.seen.requires)
	facts.Client, facts.Data = &l.asClient, l.p.Data
	if !l.readsOnly() {
		client := l.p.Client
		facts.Recent, facts.Client = slices.Clone(facts.Recent), &client
		facts.Data = slices.Clone(facts.Data)
	}
	return facts
}

func strictest(ds []perm.Decision) perm.Decision {
	out := ds[0]
	if len(ds) == 1 {
		return out
	}
	for _, d := range ds[1:] {
		if d.Effect() < out.Effect() {
			out = d
		}
	}
	details := perm.Details{Revision: out.Revision(), Labels: labelsOf(ds), Remember: rememberOf(ds, out)}
	for _, d := range ds {
		details.Limits = append(details.Limits, d.Limits()...)
		one := d.Details()
		details.Reasons = merged(details.Reasons, reasonsFor(d, out.Effect()))
		details.Hints, details.Masks = merged(details.Hints, one.Hints), merged(details.Masks, one.Masks)
		details.Requires = merged(details.Requires, one.Requires)
	}
	return perm.NewDecision(out.Effect(), details)
}

// rememberOf returns what an approval of all asks among some decisions covers.
// first is the first one of the strictest decisions.
func rememberOf(ds []perm.Decision, first perm.Decision) perm.Remember {
	out := first.Details().Remember
	for _, d := range ds {
		if first.Effect() == perm.Ask && d.Effect() == perm.Ask {
			out = out.Join(d.Details().Remember)
		}
	}
	return out
}

// merged appends the elements of more that all does not contain, in order.
func merged[E comparable](all, more []E) []E {
	for _, e := range more {
		if !slices.Contains(all, e) {
			all = append(all, e)
		}
	}
	return all
}

// unmetRequirement returns the first rule of the set require that the tool does
// not meet, and what the tool lacks.
func unmetRequirement(t tool.Tool, class effect.Class, requires []perm.Reason) (unmet perm.Reason, is bool) {
	s := spec(t)
	for _, r := range requires {
		met, fix := false, ""
		switch r.Text {
		case "verify":
			met, fix = t.CanVerify(), "the tool declares no Verify"
			if s.Verify != nil {
				fix = "a tool that it is composed of declares no Verify"
			}
		case "revert":
			met, fix = t.CanRevert() || class == effect.Pure, "calls of the tool cannot be reverted"
		case "sandbox":
			met, fix = s.Confinement == tool.Sandbox, "the tool does not run in the sandbox"
		case "preview":
			met, fix = s.Confinement == tool.Sandbox, "calls of the tool cannot be previewed, since it does not run in the sandbox"
		default:
			fix = "nothing here can meet that"
		}
		if !met {
			if r.At == raisedByResult {
				return perm.Reason{Text: fmt.Sprintf("a result of this session requires %q, and %s", r.Text, fix), Set: "require"}, true
			}
			return perm.Reason{Text: fmt.Sprintf("the policy requires %q, and %s", r.Text, fix), At: r.At, Set: "require"}, true
		}
	}
	return perm.Reason{}, false
}

// unmatched names the access if no rule matched it.
func unmatched(call admitted, a perm.ResourceAccess, d perm.Decision) string {
	if slices.ContainsFunc(d.Reasons(), func(r perm.Reason) bool { return r.At != "" }) {
		return ""
	}
	class := string(call.class)
	if spec(call.tool).EffectClass == "" {
		class += ", undeclared"
	}
	return fmt.Sprintf(": %s (effect class %s)", a, class)
}

func reasonText(d perm.Decision) string { return reasonsText(d.Reasons()) }

func reasonsText(reasons []perm.Reason) string {
	text := ""
	for _, r := range reasons {
		if text != "" {
			text += "; "
		}
		text += r.Text
		if r.At != "" {
			text += " (" + r.At + ")"
		}
	}
	if text == "" {
		return "the policy gave no reason"
	}
	return text
}

// denied ends a call at permit. Its record has a barrier, because a denial must
// not be lost.
func (l *Pipeline) denied(ctx context.Context, p permitted, why error) *tool.Outcome {
	var d *callstate.DeniedError
	if !errors.As(why, &d) {
		d = &callstate.DeniedError{Stage: "policy", Why: why.Error()}
	}
	p.pass.denied(p, d)
	decision, reason := p.redaction.record(decided(d)), p.redaction.text(d.Why)
	out := l.outcome(p, deniedStatus(d.Timeout))
	out.Stage, out.Decision = d.Stage, &decision
	out.Error = &tool.Problem{What: deniedWhat(d.Stage, d.Timeout), Why: reason, Fix: howToAllow(d, p.tool)}
	raw, err := canon.Marshal(decision)
	if err == nil {
		body := &record.Denied{
			Tool: toolRef(p.tool, ""), Key: p.key, InputDigest: p.digest, Input: p.redaction.shownInput(), Stage: d.Stage,
			Class: p.class, Declared: spec(p.tool).EffectClass != "",
			Access: accessText(d.Access), Decision: raw, Why: reason, Replaced: p.pass.replacements(), EndLoop: p.pass.end(), Timeout: d.Timeout, Order: p.order,
		}
		if !p.during {
			body.Facts = p.facts()
		}
		if q := d.Question; q != nil {
			if q.During {
				body.Facts = nil // the decision was about an access of the running call
			}
			body.During, body.Purpose, body.Others = q.During, q.Purpose, q.Access[min(1, len(q.Access)):]
		}
		if d.Stage == "filter" {
			body.Filter = p.pass.refuser()
		}
		//mutant:barrier
		err = l.p.Recorder.Write(context.WithoutCancel(ctx), revert.Write{Records: []revert.CallRecord{{Call: p.id, Body: body}}, Durable: true})
	}
	if err != nil {
		out.Error.Why += " (and the journal could not note it: " + err.Error() + ")"
		l.journalFailed.Store(true)
	}
	told := withText(out)
	if out.Stage == "grant" { // the reason names resources of the arguments
		return textWithout(told, p.input)
	}
	return told
}

// deniedStatus separates a denial from a policy that timed out. Neither lets
// the call run.
func deniedStatus(timeout bool) tool.Status {
	if timeout {
		return tool.StatusTimeout
	}
	return tool.StatusDenied
}

func deniedWhat(stage string, timeout bool) string {
	if timeout {
		return "the policy did not decide in time; it refused nothing"
	}
	return "the call was denied by " + stage
}

// howToAllow returns the fix that an error names.
func howToAllow(d *callstate.DeniedError, t tool.Tool) string {
	switch {
	case d.Timeout:
		return "repeat the call; if that does not help, the machine is overloaded, or one built-in of the policy has too much to do"
	case spec(t).EffectClass == "" && d.Stage == "policy" && spec(t).Provenance.Kind == provenance.MCP:
		return "give it an entry with an effectClass in the gateway's configuration: remit init --config FILE --write drafts those that are missing"
	case spec(t).EffectClass == "" && d.Stage == "policy":
		return "tool " + t.Name() + " declares no effect class, so it counts as having no way back; declare one: tool.Pure(), tool.Effect(effect.Reversible), …"
	case d.Stage == "grant":
		return "grant it to the session, or call within what it holds"
	case d.Stage == "filter":
		return "a filter of the program refused it: change what the filter is given, or leave it out; a policy cannot overrule it"
	case d.Around != "":
		return d.Around + "; or a person allows it: --on-ask prompt or wait of remit run, agent.Approver or agent.SuspendForApproval" + orTheRule(d, "; ")
	case d.Stage == "approver" && d.Unanswered:
		return "call it where a person can answer (agent.Approver or agent.SuspendForApproval; remit run --on-ask prompt or wait)" + orTheRule(d, ", ")
	case d.Stage == "approver":
		return "let another person approve it" + orTheRule(d, ", ")
	case d.PolicyFailed:
		return "mend the policy: until it can decide, it refuses this call, whatever a rule allows"
	case d.Access.Resource == "":
		return ""
	}
	if fix := changeRules(d.Decision.Reasons()); fix != "" {
		return fix
	}
	if d.Decision.Has("require") {
		return "call a tool that has it, or call in another session: what a result requires holds for its session, whatever a rule allows"
	}
	return fmt.Sprintf("a rule that would allow it: allow contains \"…\" if { input.access.action == %q; input.access.resource.text == %q }",
		d.Access.Action, d.Access.Resource)
}

// orTheRule returns the last alternative to an approval: to change the rule. It
// returns "" unless only a rule asked.
func orTheRule(d *callstate.DeniedError, sep string) string {
	asks := decided(d)
	if asks.Effect != perm.Ask.String() || slices.ContainsFunc(asks.Reasons, func(r perm.Reason) bool { return r.At == "" }) {
		return ""
	}
	return sep + "or change the rule that asks"
}

// changeRules says what to do about every rule that denied, or returns "" if
// none has a known place. The call is denied while any of them denies.
func changeRules(reasons []perm.Reason) string {
	var own, packs []string
	inside := map[string][]string{}
	for _, r := range reasons {
		pack, place, builtin := policies.ParseName(r.At)
		switch {
		case builtin:
			packs, inside[pack] = merged(packs, []string{pack}), merged(inside[pack], []string{place})
		case r.At != "":
			own = merged(own, []string{r.At})
		}
	}
	var fixes []string
	if len(own) > 0 {
		fixes = append(fixes, "change "+rulesAt(own))
	}
	for _, pack := range packs {
		fixes = append(fixes, fmt.Sprintf("copy the pack (remit policy new --from %s), change %s of the copy, and use that (--policy)", pack, rulesAt(inside[pack])))
	}
	if len(fixes) == 0 {
		return ""
	}
	return strings.Join(fixes, "; and ") + ": a refusal wins over every rule that allows"
}

// rulesAt names rules by their places.
func rulesAt(places []string) string {
	if len(places) == 1 {
		return "the rule at " + places[0]
	}
	return "each of the rules at " + strings.Join(places, ", ")
}

func accessText(a perm.ResourceAccess) record.Access {
	return record.Access{Action: string(a.Action), Resource: a.Resource, Method: a.Method}
}
