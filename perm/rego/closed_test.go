package rego_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/policies"
)

// failing returns policies that allow everything like the control, and have one
// rule that fails.
func failing() map[string]string {
	return map[string]string{
		"built-in in deny":      control + `deny contains "bad" if to_number(input.access.action) > 1`,
		"built-in in a helper":  control + "n := to_number(input.access.action)\ndeny contains \"bad\" if n > 1",
		"built-in in not":       control + `deny contains "bad" if not to_number(input.access.action)`,
		"allow if not deny":     "package remit\nallow contains \"all\" if count(deny) == 0\ndeny contains \"bad\" if to_number(input.access.action) > 1",
		"type of an argument":   control + `deny contains "bad" if input.call.args.path > lower(input.call.args.n)`,
		"division":              control + `deny contains "bad" if 1 / (input.call.args.n - 7) > 1`,
		"function in conflict":  control + "f(x) := 1 if x\nf(x) := 2 if x\ndeny contains \"bad\" if f(input.call.declared) == 3",
		"rule in conflict":      control + "f := 1 if input.call.declared\nf := 2 if input.call.declared\ndeny contains \"bad\" if f == 3",
		"number as a reason":    control + "hint contains input.call.args.n",
		"object as a reason":    control + "deny contains input.call.args",
		"pattern that is none":  control + `deny contains "bad" if regex.match(concat("", ["(", input.tool.version]), input.tool.name)`,
		"units of the argument": control + `limit contains "bad" if units.parse_bytes(input.call.args.path) > 1`,
	}
}

func TestFailuresDeny(t *testing.T) {
	require.Equal(t, perm.Allow, decide(t, engine(t, control), request()).Effect())
	for name, text := range failing() {
		t.Run(name, func(t *testing.T) {
			e := engine(t, text)
			d, err := e.Decide(context.Background(), request())
			require.ErrorIs(t, err, rego.ErrEvaluation)
			require.NotErrorIs(t, err, perm.ErrTimeout)
			require.Contains(t, err.Error(), "p.rego:")
			require.NotContains(t, err.Error(), "src/a.go", "an error never repeats an argument")
			require.Equal(t, perm.Deny, d.Effect())
			require.Equal(t, err.Error(), d.Reasons()[0].Text)
			require.Equal(t, e.Revision(), d.Revision())
			t.Log(err)
		})
	}
}

// TestSteps checks that the step bound of a policy does not depend on the load
// of the machine.
func TestSteps(t *testing.T) {
	for name, text := range loops() {
		t.Run(name, func(t *testing.T) {
			e, err := rego.New(rego.Options{Modules: map[string]string{"p.rego": text}, Steps: 20_000, Timeout: longTimeout})
			require.NoError(t, err)
			d, err := e.Decide(context.Background(), request())
			require.ErrorIs(t, err, rego.ErrSteps)
			require.NotErrorIs(t, err, perm.ErrTimeout, "no machine is fast enough")
			require.ErrorContains(t, err, "20000")
			require.Equal(t, perm.Deny, d.Effect())
			_, err = e.Explain(context.Background(), request())
			require.ErrorIs(t, err, rego.ErrSteps)
		})
	}
	e, err := rego.New(rego.Options{Modules: map[string]string{"p.rego": control}, Steps: 100})
	require.NoError(t, err)
	require.Equal(t, perm.Allow, decide(t, e, request()).Effect())
	_, err = rego.New(rego.Options{Modules: map[string]string{"p.rego": control}, Steps: -1})
	require.ErrorContains(t, err, "must not be negative")
}

// TestStepsByDefault checks that the default bound ends a policy that never
// ends.
func TestStepsByDefault(t *testing.T) {
	e, err := rego.New(rego.Options{Modules: map[string]string{"p.rego": loops()["loop"]}, Timeout: longTimeout})
	require.NoError(t, err)
	_, err = e.Decide(context.Background(), request())
	require.ErrorIs(t, err, rego.ErrSteps)
}

// TestPacksTakeFewSteps checks that the bound is far above what real policies
// need.
func TestPacksTakeFewSteps(t *testing.T) {
	sources := []rego.Source{{FS: policies.Workspace()}, {FS: policies.Flow(), Prefix: "flow/"}, {FS: policies.UserProvided(), Prefix: "user_provided/"}}
	for i := range sources {
		sources[i].NoTests = true
	}
	e, err := rego.New(rego.Options{Sources: sources, Steps: rego.DefaultSteps / 1000, Timeout: longTimeout})
	require.NoError(t, err)
	decide(t, e, request())
}

func loops() map[string]string {
	return map[string]string{
		"loop":  control + `deny contains "slow" if { some a in numbers.range(1, 10000); some b in numbers.range(1, 10000); a * b == -1 }`,
		"range": control + `deny contains "slow" if count(numbers.range(1, 1000000000000)) == 3`,
		"nested": control + `deny contains "slow" if {
	r := numbers.range(1, 100000)
	count([x | some a in r; some b in r; x := a * b]) == 1
}`,
	}
}

func TestDeadline(t *testing.T) {
	for name, text := range loops() {
		t.Run(name, func(t *testing.T) {
			e, err := rego.New(rego.Options{Modules: map[string]string{"p.rego": text}, Steps: math.MaxInt, Timeout: 30 * time.Millisecond})
			require.NoError(t, err)
			d, err := e.Decide(context.Background(), request())
			require.ErrorIs(t, err, perm.ErrTimeout)
			require.NotErrorIs(t, err, rego.ErrEvaluation)
			require.Equal(t, perm.Deny, d.Effect())
		})
	}
}

// TestDeadlineOfLongArguments checks that rules which topdown does not evaluate
// do not miss the deadline either.
func TestDeadlineOfLongArguments(t *testing.T) {
	for _, condition := range []string{`contains(input.call.args.a, "needle %d")`, `{input.call.args.a == input.call.args.b; input.txn.depth == %d}`} {
		var rules strings.Builder
		rules.WriteString(control)
		for i := range 2_000 {
			fmt.Fprintf(&rules, "deny contains \"%d\" if "+condition+"\n", i, i+1)
		}
		e, err := rego.New(rego.Options{Modules: map[string]string{"p.rego": rules.String()}, Timeout: 30 * time.Millisecond, CacheSize: -1})
		require.NoError(t, err)
		r := request()
		long := strings.Repeat("need", 1<<20)
		r.Call.Args = json.RawMessage(`{"a":"` + long + `","b":"` + long + `"}`)
		sure, _ := rego.CompiledAnswer(e, r)
		require.False(t, sure, condition)
		if d, err := e.Decide(context.Background(), r); err != nil { // topdown may be quick enough
			require.ErrorIs(t, err, perm.ErrTimeout, condition)
			require.Equal(t, perm.Deny, d.Effect())
		}
		r.Call.Args = json.RawMessage(`{"a":"need","b":"need"}`)
		sure, _ = rego.CompiledAnswer(e, r)
		require.True(t, sure, condition)
	}
}

// TestWorkOfOneRule checks that a rule which compares long lists, or multiplies a
// text, is left to topdown, which knows the deadline.
func TestWorkOfOneRule(t *testing.T) {
	list := make([]int, 20_000)
	for i := range list {
		list[i] = 100_000 + i
	}
	args, err := json.Marshal(map[string]any{"list": list, "text": strings.Repeat("a", 25_000)})
	require.NoError(t, err)
	for _, rule := range []string{
		`deny contains "x" if { some x in input.call.args.list; not x in input.call.args.list }`,
		`deny contains "x" if { some x in input.call.args.list; x + 1000000 in input.call.args.list }`,
		`deny contains "x" if count(replace(input.call.args.text, "a", input.call.args.text)) == 3`,
	} {
		e, err := rego.New(rego.Options{Modules: map[string]string{"p.rego": control + rule}, Timeout: longTimeout, CacheSize: -1})
		require.NoError(t, err)
		r := request()
		r.Call.Args = args
		sure, all := rego.CompiledAnswer(e, r)
		require.False(t, sure && all, rule)
	}
}

// TestDeadlineIsOfEach checks that no decision runs while all slots are taken.
// Waiting for a slot does not count against the timeout of a decision.
func TestDeadlineIsOfEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := engine(t, control+`deny contains "roles" if count(numbers.range(1, 9)) > 9`) // needs topdown
		release := rego.TakeSlots(e)
		decided := make(chan error, 1)
		go func() {
			_, err := e.Decide(context.Background(), request())
			decided <- err
		}()
		time.Sleep(time.Hour) // in the bubble; far longer than the timeout
		require.Empty(t, decided)
		release()
		require.NoError(t, <-decided)
	})
}

// TestContextDoneInTheQueue checks that a cancelled caller does not wait for a
// slot.
func TestContextDoneInTheQueue(t *testing.T) {
	e := engine(t, control)
	defer rego.TakeSlots(e)()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	d, err := e.Decide(ctx, request())
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, perm.Deny, d.Effect())
}

func TestDeadlineOfOptions(t *testing.T) {
	_, err := rego.New(rego.Options{Modules: map[string]string{"p.rego": control}, Timeout: -1})
	require.ErrorContains(t, err, "deadline")
}

func TestContextDone(t *testing.T) {
	e := engine(t, control)
	why := errors.New("the user left")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(why)
	d, err := e.Decide(ctx, request())
	require.ErrorIs(t, err, why)
	require.NotErrorIs(t, err, perm.ErrTimeout)
	require.Equal(t, perm.Deny, d.Effect())

	past, stop := context.WithTimeout(context.Background(), -1)
	defer stop()
	d, err = e.Decide(past, request())
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NotErrorIs(t, err, perm.ErrTimeout, "the caller's time is up, not the policy's")
	require.Equal(t, perm.Deny, d.Effect())
}

func TestContextDoneDuring(t *testing.T) {
	e, err := rego.New(rego.Options{
		Modules: map[string]string{"p.rego": control + `deny contains "slow" if { some a in numbers.range(1, 10000); some b in numbers.range(1, 10000); a * b == -1 }`},
		Steps:   math.MaxInt,
		Timeout: time.Minute,
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(20*time.Millisecond, cancel)
	d, err := e.Decide(ctx, request())
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, perm.Deny, d.Effect())
}

// doneLate is a context that is cancelled without interrupting the evaluation.
// Only a check after the evaluation sees it.
type doneLate struct{ looks *int }

func (c doneLate) Err() error {
	*c.looks++
	if *c.looks > 1 {
		return context.Canceled
	}
	return nil
}

func (doneLate) Done() <-chan struct{} { return nil }

func (doneLate) Deadline() (time.Time, bool) { return time.Time{}, false }

func (doneLate) Value(any) any { return nil }

func TestContextIsLookedAtAfterwards(t *testing.T) {
	looks := 0
	d, err := engine(t, control).Decide(doneLate{&looks}, request())
	require.Error(t, err)
	require.Equal(t, perm.Deny, d.Effect())
}

func TestInputThatDoesNotEncode(t *testing.T) {
	r := request()
	r.Access.Resource.Path = "\xff"
	d, err := engine(t, control).Decide(context.Background(), r)
	require.ErrorIs(t, err, rego.ErrInput)
	require.Equal(t, perm.Deny, d.Effect())
}

func TestNoEngineDenies(t *testing.T) {
	var none *rego.Engine
	for _, e := range []perm.Engine{none, &rego.Engine{}, &rego.SwappableEngine{}, rego.NewSwappableEngine(nil)} {
		d := decide(t, e, request())
		require.Equal(t, perm.Deny, d.Effect())
		require.Equal(t, "no policy is loaded", d.Reasons()[0].Text)
	}
	require.Empty(t, none.Revision())
	require.Empty(t, none.UncheckedRefs())
	_, err := none.Test(context.Background())
	require.Error(t, err)
}

func TestUnknownPurposeIsDecidedLikeARun(t *testing.T) {
	r := request()
	r.Purpose = "pondering"
	e := engine(t, control+"deny contains \"not a run\" if input.purpose != \"run\"\nensure contains \"x\"")
	d := decide(t, e, r)
	require.Equal(t, perm.Deny, d.Effect())
	require.Empty(t, d.Details().FailedPostconditions)
}

func TestPrintWritesNothing(t *testing.T) {
	read, write, err := os.Pipe()
	require.NoError(t, err)
	stdout, stderr := os.Stdout, os.Stderr
	os.Stdout, os.Stderr = write, write
	e, loadErr := load(control + `deny contains "x" if { print("secret", input.tool.name); false }`)
	var d perm.Decision
	var decideErr error
	if loadErr == nil {
		d, decideErr = e.Decide(context.Background(), request())
	}
	os.Stdout, os.Stderr = stdout, stderr
	require.NoError(t, write.Close())
	require.NoError(t, loadErr)
	require.NoError(t, decideErr)
	require.Equal(t, perm.Allow, d.Effect())
	out, err := io.ReadAll(read)
	require.NoError(t, err)
	require.Empty(t, string(bytes.TrimSpace(out)))
}

func TestCapabilitiesAreCut(t *testing.T) {
	left := map[string]bool{}
	for _, b := range rego.Capabilities().Builtins {
		require.False(t, b.Nondeterministic, b.Name)
		left[b.Name] = true
	}
	for _, name := range []string{
		"http.send", "net.lookup_ip_addr", "opa.runtime", "time.now_ns", "rand.intn", "uuid.rfc4122",
		"io.jwt.decode_verify", "io.jwt.encode_sign", "io.jwt.encode_sign_raw",
		"json.match_schema", "json.verify_schema",
		"crypto.x509.parse_and_verify_certificates", "crypto.x509.parse_and_verify_certificates_with_options",
		"rego.metadata.rule", "rego.metadata.chain",
	} {
		require.False(t, left[name], name)
	}
	require.True(t, left["crypto.x509.parse_certificates"])
	require.True(t, left["time.parse_rfc3339_ns"])
	require.Greater(t, len(left), 180)
}
