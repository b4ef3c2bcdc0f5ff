package reverttest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/remit-dev/remit/provenance"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
)

// kitVersion is the version of the grading rules.
const kitVersion = 1

// Config is the input of Grade.
type Config struct {
	// NewEnv returns a new test environment, the same each time. It is called
	// for every run.
	NewEnv func(*Wire) (TestEnv, error)
	// Inputs are the calls to try: each a tool.Args, raw JSON, or a string for
	// a free-form tool. Each must succeed in a new environment.
	Inputs []any
	// Seed selects the runs if not all can be tried.
	Seed uint64
	// Runs is the maximum number of faults to try for each input. Default: 500.
	// Single faults come first, then pairs with a fault in the process that
	// follows.
	Runs int
	// Only is the name of one run, as a finding reports it: no other runs.
	Only string
}

// Finding is a run with an unexpected result.
type Finding struct {
	Run   string   // its name, for Config.Only
	What  string   // the unexpected result
	Trace []string // the events, in order
}

// String returns the finding as text for people.
func (f *Finding) String() string {
	if f == nil {
		return ""
	}
	if f.Run == "" {
		return f.What
	}
	return fmt.Sprintf("%s\n    %s\n  so: %s", f.Run, strings.Join(f.Trace, "\n    "), f.What)
}

// Result is the result of grading a tool.
type Result struct {
	Tool   string
	Digest string // of the graded declaration
	Grade  provenance.Grade
	// Against is the first finding that prevents the next better grade; nil if
	// there is none. Without the name of a run it is the tool's declaration.
	Against *Finding
	Seed    uint64
	Runs    int // runs with a fault

	last *Finding // finding of Config.Only
}

// Grade runs a tool with every fault that it knows, in new environments, and
// grades how reliably its calls can be reverted. An error concerns the
// configuration: the tool has no grade then.
func Grade(t tool.Tool, c Config) (Result, error) {
	res := Result{Tool: t.Name(), Digest: t.Digest(), Grade: provenance.Ungraded, Seed: c.Seed}
	if c.Runs <= 0 {
		c.Runs = 500
	}
	switch {
	case t.IsZero():
		return res, errors.New("reverttest: the zero Tool cannot be graded")
	case c.NewEnv == nil:
		return res, errors.New("reverttest: Config.NewEnv is missing: it makes what the tool acts on")
	case len(c.Inputs) == 0:
		return res, errors.New("reverttest: Config.Inputs is empty: nothing would be tried")
	}
	g := &grading{config: c, result: &res, class: t.Class()}
	var err error
	if g.tool, err = wrapped(t); err != nil {
		return res, err
	}
	if err := g.all(); err != nil {
		return Result{Tool: res.Tool, Digest: res.Digest, Grade: provenance.Ungraded, Seed: c.Seed}, err
	}
	g.decide()
	return res, nil
}

// grading is the state of grading one tool.
type grading struct {
	config  Config
	tool    tool.Tool
	class   effect.Class
	result  *Result
	effects int      // inputs with an effect
	damage  *Finding // a violated requirement
	left    *Finding // a caller learned that the call could not be reverted
	traces  *Finding
}

func (g *grading) all() error {
	for i, args := range g.config.Inputs {
		c := &inputRuns{
			tool: g.tool, input: i, args: args, make: g.config.NewEnv, seed: g.config.Seed,
			verifies: g.tool.Verifier().IsPresent(), idempotent: g.tool.Spec().Hints.Idempotent,
		}
		if err := g.input(c); err != nil {
			return fmt.Errorf("reverttest: input %d of tool %s: %w", i, g.tool.Name(), err)
		}
	}
	if g.effects == 0 && g.class != effect.Pure {
		return fmt.Errorf("reverttest: no input of tool %s changes anything in the world's snapshot, so nothing can be said of its undo", g.tool.Name())
	}
	return nil
}

// input runs a call without faults, and then with each fault.
func (g *grading) input(c *inputRuns) error {
	traces, err := g.learn(c)
	if err != nil {
		return err
	}
	if g.config.Only != "" {
		return g.only(c)
	}
	if g.class != effect.Pure && !g.tool.CanRevert() {
		return nil // the declaration is sufficient
	}
	if err := g.faults(c, traces); err != nil {
		return err
	}
	return nil
}

// learn runs the call twice without a fault, and redoes it once.
func (g *grading) learn(c *inputRuns) ([]reachedPoint, error) {
	first, err := c.start(nil, false)
	if err != nil {
		return nil, err
	}
	before, err := first.look()
	if err != nil {
		return nil, errors.Join(err, first.finish())
	}
	if err := first.finish(); err != nil {
		return nil, err
	}
	if first.outcome.Status != tool.StatusDone || first.seen == nil {
		return nil, fmt.Errorf("the call should work in a fresh world, and ended %s%s %s", first.outcome.Status, why(first.outcome), strings.Join(first.wrong, "; "))
	}
	c.before, c.after = before, first.seen
	if len(differ(before.is, first.seen.is)) > 0 {
		g.effects++
	}
	c.setOtherActors(first)
	var traces []reachedPoint
	for _, redone := range []bool{false, g.tool.Spec().Revert == nil} {
		r, err := c.start(nil, redone)
		if err == nil {
			err = r.finish()
		}
		if err != nil {
			return nil, err
		}
		if r.seen != nil {
			c.steady = len(differ(c.after.is, r.seen.is)) == 0
		}
		g.judge(r)
		traces = r.traces[0]
	}
	return traces, nil
}

// setOtherActors sets the changes that another actor can make between a call and its
// revert.
func (c *inputRuns) setOtherActors(r *run) {
	c.otherActors = sorted(r.env.Foreign)
	dirs := false
	for _, name := range differ(c.before.is, c.after.is) {
		if file, ok := strings.CutPrefix(name, "file "); ok {
			c.touched = append(c.touched, file)
			dirs = dirs || strings.HasPrefix(c.after.is[name], "dir ")
		}
	}
	if len(c.touched) > 0 {
		c.otherActors = append(c.otherActors, writes, removes)
	}
	if dirs {
		c.otherActors = append(c.otherActors, adds)
	}
}

// only runs the run that the configuration names.
func (g *grading) only(c *inputRuns) error {
	input, w, err := parseName(g.config.Only)
	if err != nil || input != c.input {
		return err
	}
	r, err := g.try(c, w)
	if err == nil {
		g.result.last = r.finding(strings.Join(r.wrong, "; "))
	}
	return err
}

// faults tries single faults, and then those followed by another one after a
// crash.
func (g *grading) faults(c *inputRuns, moments []reachedPoint) error {
	ways := c.extend(nil, moments, true)
	random := rand.New(rand.NewPCG(c.seed, uint64(c.input)))
	var second []faultPath
	for _, w := range sample(random, ways, g.config.Runs) {
		r, err := g.try(c, w)
		if err != nil {
			return err
		}
		if w[0].how.crash() && len(r.traces) > 1 {
			second = append(second, c.extend(w, r.traces[1], false)...)
		}
		if g.damage != nil {
			return nil
		}
	}
	for _, w := range sample(random, second, g.config.Runs-len(ways)) {
		if _, err := g.try(c, w); err != nil || g.damage != nil {
			return err
		}
	}
	return nil
}

// extend returns the runs that extend a run by one fault.
func (c *inputRuns) extend(w faultPath, moments []reachedPoint, first bool) (all []faultPath) {
	for i, n := range moments {
		for _, h := range c.actionsAt(i, n, first) {
			all = append(all, append(w[:len(w):len(w)], fault{i, h}))
		}
	}
	return all
}

// sample returns all of them, or most of them at random, in order.
func sample(random *rand.Rand, all []faultPath, most int) []faultPath {
	if len(all) <= most {
		return all
	}
	chosen := random.Perm(len(all))[:max(most, 0)]
	slices.Sort(chosen)
	out := make([]faultPath, len(chosen))
	for i, n := range chosen {
		out[i] = all[n]
	}
	return out
}

func (g *grading) try(c *inputRuns, w faultPath) (*run, error) {
	r, err := c.start(w, false)
	if err == nil {
		err = r.finish()
	}
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", name(c.input, w), err)
	}
	g.result.Runs++
	g.judge(r)
	return r, nil
}

func (g *grading) judge(r *run) {
	if len(r.wrong) > 0 && g.damage == nil {
		g.damage = r.finding(r.wrong[0])
	}
	undone := r.report == nil || r.report.Complete()
	// While the code of a cancelled call still runs, its outcome is unknown for
	// every tool. So that does not affect the grade.
	givenUp := len(r.path) > 0 && r.path[0].how == cancel
	if !undone && !givenUp && len(r.theirs)+len(r.gone) == 0 {
		text := "what is left is said, and is left to a person"
		if len(r.path) == 0 {
			text = "it is not reverted although nothing went wrong"
			if g.damage == nil {
				g.damage = r.finding(text)
			}
		}
		if g.left == nil {
			g.left = r.finding(text)
		}
	}
	if len(r.path) > 0 || !undone || g.traces != nil {
		return
	}
	if r.end != nil && len(differ(r.c.before.traces, r.end.traces)) > 0 {
		g.traces = r.finding("traces remain: " + differences(r.c.before.traces, r.end.traces))
	}
}

func (r *run) finding(what string) *Finding {
	r.mu.Lock()
	defer r.mu.Unlock()
	return &Finding{Run: name(r.c.input, r.path), What: what, Trace: slices.Clone(r.trace)}
}

// decide determines the grade.
func (g *grading) decide() {
	res := g.result
	declared := func(what string) *Finding { return &Finding{What: what} }
	switch {
	case g.class == effect.Pure && g.effects == 0 && g.damage == nil:
		res.Grade = provenance.ReadOnly
	case g.class == effect.Pure:
		res.Grade, res.Against = provenance.NotUndoable, g.damage
		if res.Against == nil {
			res.Against = declared("it is declared as pure, and changes something")
		}
	case !g.tool.CanRevert():
		res.Grade, res.Against = provenance.NotUndoable, declared(fmt.Sprintf("it is declared as %s: once it ran there is no way back", g.class))
	case g.damage != nil:
		res.Grade, res.Against = provenance.NotUndoable, g.damage
	case g.left != nil:
		res.Grade, res.Against = provenance.Compensable, g.left
	case g.traces != nil:
		res.Grade, res.Against = provenance.Compensable, g.traces
	case g.class != effect.Reversible:
		res.Grade, res.Against = provenance.Compensable, declared(fmt.Sprintf("it is declared as %s: traces remain", g.class))
	default:
		res.Grade = provenance.CrashUndoable
	}
}
