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

// Engine decides by one policy. It never changes after New, so it is safe for
// concurrent use. A SwappableEngine replaces one Engine by another.
type Engine struct {
	rules    *ruleset // rules that decide
	plain    *ruleset // rules before the expansion of tables; Explain uses them
	modules  *modules
	data     map[string]any // immutable
	keys     keys
	parts    []inputField
	cache    *decisionCache
	steps    int
	deadline time.Duration
	slots    evalSlots
	revision string
	notes    []UncheckedRef
	slow     []UncheckedRef // tables that were not expanded into rules
	urls     bool           // the policy reads the URLs of a call or whether they are user-provided
	values   bool           // the policy reads where values come from
	results  bool           // labels depend on the result of a call
	content  bool           // the policy reads the content after changes
}

// ruleset is the compiled form of one policy.
type ruleset struct {
	compiler *ast.Compiler
	store    storage.Store
	txn      storage.Transaction // read-only, shared by every decision
	places   []place
	numbers  map[*ast.Rule]int // numbers of the positions
	queries  map[perm.Purpose]query
	masks    *lru.Cache[string, string] // errors of masks, which every decision needs

	notCompiled []*ast.Rule // rules of sets that topdown evaluates
}

// query is the compiled query for one purpose. Its plan lists what it depends
// on. If some rules are compiled, rest and restBody ask for the others.
type query struct {
	body ast.Body
	plan *plan

	compiled *compiledRules
	rest     *ruleset
	restBody ast.Body
}

// Load creates an Engine from trees of policy files, with the default Options.
func Load(sources ...Source) (*Engine, error) { return New(Options{Sources: sources}) }

// New checks and compiles a policy. It reports errors of the policy as a
// *LoadError. The Engine copies everything in the options.
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
	if rules, err = rules.withCompiled(m.names, list); err != nil {
		return nil, err
	}
	remembered, err := newDecisionCache(o.CacheSize)
	if err != nil {
		return nil, err
	}
	return &Engine{
		rules: rules, plain: plain, slow: slow, modules: m, data: data, keys: newKeys(), parts: list, cache: remembered, steps: o.Steps, deadline: o.Timeout, slots: newEvalSlots(),
		revision: revision(files, raw), notes: notes, urls: plain.reads("call.urls", "access.user_provided"), values: plain.reads("call.values", "call.values_cut"), results: plain.labelsResults(),
		content: plain.readsContent(),
	}, nil
}

// Revision returns a digest of the policy: the texts of its modules, without
// tests, and its data.
func (e *Engine) Revision() string {
	if e == nil {
		return ""
	}
	return e.revision
}

// UncheckedRefs returns the positions where New cannot detect a misspelt field
// or value: parameters of functions, computed keys, whole documents.
func (e *Engine) UncheckedRefs() []UncheckedRef {
	if e == nil {
		return nil
	}
	return append([]UncheckedRef(nil), e.notes...)
}

// Ensures reports whether the policy has postconditions. If not, the runtime
// does not need to decide with purpose verify.
func (e *Engine) Ensures() bool {
	return e != nil && e.rules != nil && slices.ContainsFunc(e.rules.places, func(p place) bool { return p.set == setEnsure })
}

// Redacts reports whether the policy redacts anything. If not, the runtime does
// not need to ask what to redact of a denied call.
func (e *Engine) Redacts() bool {
	return e != nil && e.rules != nil && slices.ContainsFunc(e.rules.places, func(p place) bool { return p.set == setRedact })
}

// DecidesCommits reports whether the policy has rules about commits. If not, the
// runtime commits without a decision.
func (e *Engine) DecidesCommits() bool {
	return e != nil && e.rules != nil && slices.ContainsFunc(e.rules.places, func(p place) bool { return ofCommits(p.set) })
}

// ReadsURLs reports whether the policy reads the URLs of a call, or whether
// they are user-provided. If not, the runtime does not search for URLs.
func (e *Engine) ReadsURLs() bool { return e != nil && e.urls }

// ReadsValues reports whether the policy reads where the values of arguments
// come from. If it does not, the runtime does not find it out.
func (e *Engine) ReadsValues() bool { return e != nil && e.values }

// ReadsOnly reports that Decide neither changes nor keeps what a request refers
// to. The runtime then makes no copies for it.
func (*Engine) ReadsOnly() bool { return true }

// LabelsResults reports whether a label of the policy depends on the result of
// a call. If so, the runtime must decide with purpose verify.
func (e *Engine) LabelsResults() bool { return e != nil && e.results }

// Decide decides one request. With an error, the decision is a denial with the
// reason. A nil or zero Engine denies.
func (e *Engine) Decide(ctx context.Context, r perm.Request) (perm.Decision, error) {
	if e == nil || e.rules == nil {
		return noPolicy(), nil
	}
	s := newState(&e.keys, e.parts, &r)
	defer s.release()
	d, err := e.decide(ctx, s)
	if err != nil {
		return e.refusal(err), err
	}
	return d, nil
}

// noPolicy returns the decision of a nil or zero engine.
func noPolicy() perm.Decision {
	return perm.NewDecision(perm.Deny, perm.Details{Reasons: []perm.Reason{{Text: "no policy is loaded", Set: setDeny}}})
}

// refusal returns the denial for an evaluation that failed.
func (e *Engine) refusal(err error) perm.Decision {
	why := perm.Reason{Text: err.Error(), Set: setDeny}
	return perm.NewDecision(perm.Deny, perm.Details{Reasons: []perm.Reason{why}, Revision: e.revision})
}

func (e *Engine) decide(ctx context.Context, s *decisionState) (perm.Decision, error) {
	if ctx.Err() != nil {
		return perm.Decision{}, cancelled(ctx)
	}
	q := e.rules.query(s.request.Purpose)
	s.plan = q.plan
	//mutant:check
	if err := check(q.plan, &s.request); err != nil {
		return perm.Decision{}, err
	}
	whole := e.cache != nil
	if whole {
		s.key, whole = q.plan.keyOf(&s.request, s.key[:0])
	}
	if !whole {
		return e.fresh(ctx, q, s)
	}
	if d, known := e.cache.get(s.key); known {
		return d, nil
	}
	d, err := e.fresh(ctx, q, s)
	if err == nil {
		e.cache.put(s.key, d)
	}
	return d, err
}

// fresh evaluates the policy without the cache.
func (e *Engine) fresh(ctx context.Context, q query, s *decisionState) (perm.Decision, error) {
	answers, err := e.answers(ctx, q, s)
	if err != nil {
		return perm.Decision{}, err
	}
	effect, details := answers.compose(&s.request, e.rules.bad)
	details.Revision = e.revision
	return perm.NewDecision(effect, details), nil
}

// answers returns the elements of all rules: of the compiled ones by their
// functions, of the others by topdown.
func (e *Engine) answers(ctx context.Context, q query, s *decisionState) (setElements, error) {
	var got setElements
	sure := q.compiled != nil
	if sure {
		got, sure = q.compiled.ask(s)
	}
	rules, body := e.rules, q.body
	switch {
	case sure && len(q.restBody) > 0:
		rules, body = q.rest, q.restBody
	case sure && ctx.Err() != nil:
		return nil, cancelled(ctx)
	case sure:
		return got, s.err
	}
	input, err := s.input()
	if err != nil {
		return nil, err
	}
	others, err := e.evaluate(withHistory(ctx, &s.request.Session), rules, body, input, nil)
	if err != nil || !sure {
		return others, err
	}
	got.add(others)
	return got, nil
}

// ruleset compiles the located copies and the queries for them.
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
	for _, purpose := range []perm.Purpose{perm.PurposeRun, perm.PurposeVerify, perm.PurposeList, perm.PurposeCommit} {
		if r.queries[purpose], err = r.prepare(purpose, list); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// maxMasks bounds the number of cached masks.
const maxMasks = 256

// bad returns the error of an element, as badElement.
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

// number finds the compiled copies of located, which have the same order.
func (r *ruleset) number(names []string) {
	for _, name := range names {
		for _, rule := range r.compiler.Modules[name].Rules {
			if strings.HasPrefix(headName(rule), privatePrefix) {
				r.numbers[rule] = len(r.numbers)
			}
		}
	}
}

// query returns the query for a purpose.
func (r *ruleset) query(purpose perm.Purpose) query {
	if q, special := r.queries[purpose]; special {
		return q
	}
	return r.queries[perm.PurposeRun]
}

// prepare builds the query for the sets that have a rule. It binds each to a
// variable with its name. This costs half as much as querying one document made
// of the sets.
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

// labelsResults reports whether a rule of label reads data that exists only
// after a call has run.
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
