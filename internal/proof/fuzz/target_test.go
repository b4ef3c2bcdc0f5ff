package main

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const listed = `{"Action":"start","Package":"m/b"}
{"Action":"output","Package":"m/b","Output":"FuzzZ\n"}
{"Action":"output","Package":"m/b","Output":"FuzzA\n"}
{"Action":"output","Package":"m/b","Output":"ok  \tm/b\t0.1s\n"}
{"Action":"output","Package":"m/a","Output":"FuzzB\n"}
`

const ended = `fuzz: elapsed: 0s, gathering baseline coverage: 0/7 completed
fuzz: elapsed: 3s, execs: 100 (33/sec), new interesting: 1 (total: 8)
fuzz: elapsed: 6s, execs: 250 (50/sec), new interesting: 2 (total: 9)
PASS
`

// asked replaces the go command, and records its arguments.
type asked struct {
	fuzzed  []string
	failing string // the target that fails
	quiet   string // the target without output
}

func (a *asked) do(_ context.Context, args ...string) ([]byte, error) {
	line := strings.Join(args, " ")
	if strings.Contains(line, "-list") {
		return []byte(listed), nil
	}
	a.fuzzed = append(a.fuzzed, line)
	switch {
	case a.failing != "" && strings.Contains(line, a.failing):
		return []byte("fuzz: elapsed: 3s, execs: 5 (1/sec), new interesting: 0 (total: 3)\n--- FAIL: why\n"), errors.New("exit status 1")
	case a.quiet != "" && strings.Contains(line, a.quiet):
		return []byte("PASS\n"), nil
	}
	return []byte(ended), nil
}

func TestRun(t *testing.T) {
	a, out := &asked{}, &strings.Builder{}
	require.Zero(t, run(t.Context(), out, a.do, []string{"-for", "2s"}))
	require.Equal(t, []string{
		"test -run ^$ -fuzz ^FuzzB$ -fuzztime 2s m/a", "test -run ^$ -fuzz ^FuzzA$ -fuzztime 2s m/b", "test -run ^$ -fuzz ^FuzzZ$ -fuzztime 2s m/b",
	}, a.fuzzed)
	require.Equal(t, 4, strings.Count(out.String(), "\n"), "a line each, and the sum")
	require.Contains(t, out.String(), "250 executions, 9 of interest")
	require.Contains(t, out.String(), "3 targets, 750 executions")
}

func TestRunOne(t *testing.T) {
	a := &asked{}
	require.Zero(t, run(t.Context(), &strings.Builder{}, a.do, []string{"FuzzZ"}))
	require.Len(t, a.fuzzed, 1)
	require.Equal(t, 2, run(t.Context(), &strings.Builder{}, a.do, []string{"FuzzC"}), "no such target")
	for _, args := range [][]string{{"-for", "1ms"}, {"-for", "soon"}, {"-unheard-of"}} {
		require.Equal(t, 2, run(t.Context(), &strings.Builder{}, a.do, args), args)
	}
	require.Len(t, a.fuzzed, 1)
	said, err := goCommand(t.Context(), "env", "GOOS")
	require.NoError(t, err)
	require.Equal(t, runtime.GOOS+"\n", string(said))
}

func TestRunTellsWhatIsFound(t *testing.T) {
	out := &strings.Builder{}
	a := &asked{failing: "FuzzB"}
	require.Equal(t, 1, run(t.Context(), out, a.do, nil))
	require.Len(t, a.fuzzed, 3, "the others run all the same")
	require.Contains(t, out.String(), "FOUND SOMETHING after 5 executions")
	require.Contains(t, out.String(), "--- FAIL: why")
	require.Equal(t, 1, run(t.Context(), out, (&asked{quiet: "FuzzA"}).do, nil), "nothing tried is nothing shown")
}

func TestFindNothing(t *testing.T) {
	none := func(context.Context, ...string) ([]byte, error) { return nil, nil }
	require.Equal(t, 1, run(t.Context(), &strings.Builder{}, none, nil))
	broken := func(context.Context, ...string) ([]byte, error) { return []byte("no"), errors.New("exit status 1") }
	require.Equal(t, 1, run(t.Context(), &strings.Builder{}, broken, nil))
}
