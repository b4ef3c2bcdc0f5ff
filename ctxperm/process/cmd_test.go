package process

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/perm"
)

// TestCmdIsRefused checks that Access and Run refuse a command that no sandbox
// can run, before any decision.
func TestCmdIsRefused(t *testing.T) {
	for why, c := range map[string]Cmd{
		"argv names no program":      {},
		"argv names no program ":     {Argv: []string{"", "a"}},
		"the folder: ":               {Argv: []string{"ls"}, Dir: "../x"},
		"the folder":                 {Argv: []string{"ls"}, Root: "No Root"},
		`"1X" is no variable`:        {Argv: []string{"ls"}, Env: map[string]string{"1X": "v"}},
		`"A B" is no variable`:       {Argv: []string{"ls"}, Env: map[string]string{"A B": "v"}},
		`"" is no variable`:          {Argv: []string{"ls"}, Env: map[string]string{"": "v"}},
		"the variable X holds a NUL": {Argv: []string{"ls"}, Env: map[string]string{"X": "a\x00b"}},
		"only the driver sets it":    {Argv: []string{"ls"}, Env: map[string]string{"PATH": "/tmp"}},
		"the program: ":              {Argv: []string{"./../../x"}},
		"holds a NUL":                {Argv: []string{"ls", "a\x00"}},
		"text is too long":           {Argv: []string{strings.Repeat("x", 9000)}},
	} {
		why = strings.TrimSpace(why)
		_, err := c.Access()
		require.ErrorIs(t, err, ctxperm.ErrInvalid, why)
		require.ErrorContains(t, err, why)
		_, err = Run(t.Context(), ctxperm.ToolContext{}, c)
		require.ErrorContains(t, err, why)
	}
}

// TestRunOutsideOfACall checks that a zero context runs nothing.
func TestRunOutsideOfACall(t *testing.T) {
	_, err := Run(t.Context(), ctxperm.ToolContext{}, Cmd{Argv: []string{"true"}})
	require.ErrorIs(t, err, ctxperm.ErrClosed)
}

// TestAccessOfCmd checks the accesses of a program by name, by absolute path
// and as a file, and of the network.
func TestAccessOfCmd(t *testing.T) {
	for _, tt := range []struct {
		cmd  Cmd
		want string
	}{
		{Cmd{Argv: []string{"git"}}, "exec://git"},
		{Cmd{Argv: []string{"/opt/../usr/bin/git"}}, "exec:///usr/bin/git"},
		{Cmd{Argv: []string{"./run"}, Root: "other", Dir: "d"}, "file://other/d/run"},
	} {
		all, err := tt.cmd.Access()
		require.NoError(t, err)
		require.Equal(t, []perm.ResourceAccess{{Action: perm.Execute, Resource: tt.want, Argv: all[0].Argv}}, all)
		tt.cmd.Network = true
		all, err = tt.cmd.Access()
		require.NoError(t, err)
		require.Equal(t, perm.Access(perm.Connect, tt.want), all[1])
	}
}

// TestEnvironment checks that a variable of the command replaces one of the
// caller, and that one of the driver.
func TestEnvironment(t *testing.T) {
	d, err := New(Config{Env: []string{"A=driver"}, Path: "/x"})
	require.NoError(t, err)
	got := Cmd{Env: map[string]string{"C": "2", "B": "1"}, Attachment: &Attachment{Environment: Environment{
		Vars: map[string]string{"B": "caller", "A": "caller", "D": "caller"},
	}}}.environment(d, "/home")
	require.Equal(t, []string{"A=caller", "B=1", "C=2", "D=caller", "HOME=/home", "LANG=C.UTF-8", "PATH=/x", "TMPDIR=/tmp"}, got)
}

// TestNewRefuses checks that New refuses limits that no run can meet.
func TestNewRefuses(t *testing.T) {
	for why, c := range map[string]Config{
		"there are none, partial and strict": {Require: "strong"},
		"no program runs":                    {Require: None},
		`"nonsense" is no variable`:          {Env: []string{"nonsense"}},
		"PATH says":                          {Env: []string{"PATH=/x"}},
	} {
		_, err := New(c)
		require.ErrorContains(t, err, why)
	}
	d, err := New(Config{Limits: Limits{CPU: time.Second, Processes: 3}})
	require.NoError(t, err)
	require.Empty(t, d.Schemes())
	require.Equal(t, 3, d.cfg.Limits.sandbox().Processes)
}
