package rego

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/storage"
	"github.com/open-policy-agent/opa/v1/storage/inmem"

	"github.com/remit-dev/remit/perm"
)

// Engine decides by one policy. It never changes after New made it, so any
// number of goroutines may use it; see Live for exchanging one for another.
type Engine struct {
	rules    *ruleset // what decides
	plain    *ruleset // the same before tables became rules: what explains
	modules  *modules
	data     map[string]any // never changed
	keys     keys
	parts    []inputField
	memo     *decisionCache
	steps    int
	deadline time.Duration
	turns    evalSlots
	revision string
	notes    []UncheckedRef
	slow     []UncheckedRef // tables that did not become rules
	urls     bool           // it reads which URLs a call names and was given
	results  bool           // labels depend on what a call returned
	content  bool           // it reads the content that changes left
}

// ruleset is what one policy is evaluated with.
type ruleset struct {
	compiler *ast.Compiler
	store    storage.Store
	txn      storage.Transaction // read-only, shared by every decision
	places   []place
	numbers  map[*ast.Rule]int // of places
	queries  map[perm.Purpose]query
	masks    *lru.Cache[string, string] // what is wrong with each, which is asked for with every decision
}

// query is what is asked for one purpose. Its plan says what that depends on.
type query struct {
	body ast.Body
	plan *plan
}

// Load makes an Engine from trees of policy files, with the defaults of Options.
func Load(sources ...Source) (*Engine, error) { return New(Options{Sources: sources}) }

// New checks and compiles a policy. What is wrong with it comes back as a
// *LoadError. The Engine keeps copies of everything in the options.
func New(o Options) (*Engine, error) {
	if o.Timeout < 0 {
		return nil, fmt.Errorf("rego: the deadline %v is in the past", o.Timeout)
	}
	if o.Steps < 0 {
		return nil, fmt.Errorf("rego: Options.Steps %d: must not be negative", o.Steps)
	}
	o.Timeout, o.Steps = cmp.Or(o.Timeout, DefaultTimeout), cmp.Or(o.Steps, DefaultSteps)
	files, given, err := o.files()
	if err != nil {
		return nil, err
	}
	raw, data, err := freezeData(given)
	if err != nil {
		return nil, err
	}
	m, err := parse(files)
	if err != nil {
		return nil, err
	}
	lib, err := m.addLib()
	if err != nil {
		return nil, err
	}
	files = append(files, lib...)
	notes, err := m.check(data)
	if err != nil {
		return nil, err
	}
	list := parts()
	plain, err := m.ruleset(data, list)
	if err != nil {
		return nil, err
	}
	rules, slow := plain.specialised(m, list, maxRows)
	remembered, err := newMemo(o.CacheSize)
	if err != nil {
		return nil, err
	}
	return &Engine{
		rules: rules, plain: plain, slow: slow, modules: m, data: data, keys: newKeys(), parts: list, memo: remembered, steps: o.Steps, deadline: o.Timeout, turns: newTurns(),
		revision: revision(files, raw), notes: notes, urls: plain.reads("call.urls", "access.given"), results: plain.labelsResults(),
		content: plain.readsContent(),
	}, nil
}

// Revision names the policy: a digest of the texts of its modules, without
// tests, and of its data.
func (e *Engine) Revision() string {
	if e == nil {
		return ""
	}
	return e.revision
}

// UncheckedRefs lists the places where a misspelt field or value would not have
// been found by New: parameters of functions, computed keys, whole documents.
func (e *Engine) UncheckedRefs() []UncheckedRef {
	if e == nil {
		return nil
	}
	return append([]UncheckedRef(nil), e.notes...)
}

// Ensures reports whether the policy has postconditions at all; where it has
// none nobody need ask with purpose verify.
func (e *Engine) Ensures() bool {
	return e != nil && e.rules != nil && slices.ContainsFunc(e.rules.places, func(p place) bool { return p.set == setEnsure })
}

// Redacts reports whether the policy redacts anything; where it does not nobody
// need ask what of a refused call is to be hidden.
func (e *Engine) Redacts() bool {
	return e != nil && e.rules != nil && slices.ContainsFunc(e.rules.places, func(p place) bool { return p.set == setRedact })
}

// ReadsURLs reports whether the policy reads which URLs a call names and was given; where it does not nobody need look.
func (e *Engine) ReadsURLs() bool { return e != nil && e.urls }

// LabelsResults reports whether a label of the policy depends on what a call returned, so that it has to be asked with purpose verify.
func (e *Engine) LabelsResults() bool { return e != nil && e.results }

// Decide answers one request. With an error the decision is a denial that says
// why; a nil or zero Engine denies.
func (e *Engine) Decide(ctx context.Context, r perm.Request) (perm.Decision, error) {
	if e == nil || e.rules == nil {
		return noPolicy(), nil
	}
	d, err := e.decide(ctx, r)
	if err != nil {
		return e.refusal(err), err
	}
	return d, nil
}

// noPolicy is the decision of an engine that was never made.
func noPolicy() perm.Decision {
	return perm.NewDecision(perm.Deny, perm.Details{Reasons: []perm.Reason{{Text: "no policy is loaded", Set: setDeny}}})
}

// refusal is the decision where there is none.
func (e *Engine) refusal(err error) perm.Decision {
	why := perm.Reason{Text: err.Error(), Set: setDeny}
	return perm.NewDecision(perm.Deny, perm.Details{Reasons: []perm.Reason{why}, Revision: e.revision})
}

func (e *Engine) decide(ctx context.Context, r perm.Request) (perm.Decision, error) {
	if ctx.Err() != nil {
		return perm.Decision{}, cancelled(ctx)
	}
	r = r.Filled()
	q := e.rules.query(r.Purpose)
	if err := check(e.parts, q.plan, &r); err != nil {
		return perm.Decision{}, err
	}
	key, whole := q.plan.keyOf(&r)
	if whole {
		if d, known := e.memo.get(key); known {
			return d, nil
		}
	}
	d, err := e.fresh(ctx, q, r)
	if err == nil && whole {
		e.memo.put(key, d)
	}
	return d, err
}

// fresh evaluates the policy.
func (e *Engine) fresh(ctx context.Context, q query, r perm.Request) (perm.Decision, error) {
	input, err := q.plan.document(&e.keys, &r)
	if err != nil {
		return perm.Decision{}, err
	}
	answers, err := e.evaluate(ctx, e.rules, q.body, input, nil)
	if err != nil {
		return perm.Decision{}, err
	}
	effect, details := answers.compose(r, e.rules.bad)
	details.Revision = e.revision
	return perm.NewDecision(effect, details), nil
}

// ruleset compiles the located copies and the queries that ask for them.
func (m *modules) ruleset(data map[string]any, list []inputField) (*ruleset, error) {
	c, err := newCompiler()
	if err != nil {
		return nil, err
	}
	located, places := m.located()
	if c.Compile(located); c.Failed() {
		return nil, fmt.Errorf("rego: rules with locations: %w", c.Errors)
	}
	store := inmem.NewFromObjectWithOpts(data, inmem.OptReturnASTValuesOnRead(true))
	txn, err := store.NewTransaction(context.Background())
	if err != nil {
		return nil, fmt.Errorf("rego: the data: %w", err)
	}
	r := &ruleset{compiler: c, store: store, txn: txn, places: places, numbers: map[*ast.Rule]int{}, queries: map[perm.Purpose]query{}}
	if r.masks, err = lru.New[string, string](maxMasks); err != nil {
		return nil, err
	}
	r.number(m.names)
	for _, purpose := range []perm.Purpose{perm.PurposeRun, perm.PurposeVerify, perm.PurposeList} {
		if r.queries[purpose], err = r.prepare(purpose, list); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// maxMasks is how many masks are known to be patterns.
const maxMasks = 256

// bad says what is wrong with an element, as badElement.
func (r *ruleset) bad(set, text string) string {
	if set != setMask {
		return badElement(set, text)
	}
	why, known := r.masks.Get(text)
	if !known {
		why = badElement(set, text)
		r.masks.Add(text, why)
	}
	return why
}

// number finds the compiled copies of located, which stand in its order.
func (r *ruleset) number(names []string) {
	for _, name := range names {
		for _, rule := range r.compiler.Modules[name].Rules {
			if strings.HasPrefix(headName(rule), privatePrefix) {
				r.numbers[rule] = len(r.numbers)
			}
		}
	}
}

// query returns what is asked for a purpose.
func (r *ruleset) query(purpose perm.Purpose) query {
	if q, special := r.queries[purpose]; special {
		return q
	}
	return r.queries[perm.PurposeRun]
}

// prepare makes the query that asks for the sets that have a rule, each bound
// to a variable of its name. Asking for the sets themselves costs half of
// asking for one document made from them.
func (r *ruleset) prepare(purpose perm.Purpose, list []inputField) (query, error) {
	var body ast.Body
	var rules []*ast.Rule
	for _, set := range setNames() {
		have := r.rulesOf(set)
		if len(have) > 0 && asked(set, purpose) {
			body.Append(ast.Equality.Expr(ast.VarTerm(set), ast.NewTerm(setRef(set))))
			rules = append(rules, have...)
		}
	}
	q := query{body: body, plan: newPlan(list, readsOf(r.compiler, rules))}
	if len(body) == 0 {
		return q, nil
	}
	var err error
	if q.body, err = r.compiler.QueryCompiler().Compile(body); err != nil {
		return query{}, fmt.Errorf("rego: the query for purpose %s: %w", purpose, err)
	}
	return q, nil
}

// reads reports whether any query reads one of these parts.
func (r *ruleset) reads(parts ...string) bool {
	for _, q := range r.queries {
		for _, p := range parts {
			if q.plan.reads[p] {
				return true
			}
		}
	}
	return false
}

// labelsResults reports whether a rule of label reads what there is only once a call has run.
func (r *ruleset) labelsResults() bool {
	for _, of := range readsOf(r.compiler, r.rulesOf(setLabel)) {
		if len(of.path) == 0 || of.path[0] == "output" || of.path[0] == "purpose" {
			return true
		}
	}
	return false
}

func setRef(set string) ast.Ref {
	return ast.Ref{ast.DefaultRootDocument, ast.StringTerm("remit"), ast.StringTerm(privateName(set))}
}

// rulesOf returns the compiled copies of the rules of a set.
func (r *ruleset) rulesOf(set string) []*ast.Rule { return r.compiler.GetRulesExact(setRef(set)) }
