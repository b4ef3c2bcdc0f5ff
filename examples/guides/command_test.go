package guides_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// built is the remit command, built once for all tests of this process.
var built struct {
	once sync.Once
	dir  string
	out  []byte
	err  error
}

// binary returns the folder that contains the remit command.
func binary(t testing.TB) string {
	t.Helper()
	built.once.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "remit-guides-"); built.err != nil {
			return
		}
		// As make build does it, but for -trimpath: with it, every package is compiled once more.
		cmd := exec.Command("go", "build", "-ldflags=-s -w", "-o", built.dir+string(filepath.Separator), "./cmd/remit")
		cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0")
		built.out, built.err = cmd.CombinedOutput()
	})
	require.NoError(t, built.err, "%s", built.out)
	return built.dir
}

// place is a folder with a home and a workspace, in which commands run like
// those of a reader of the guide.
type place struct {
	t    testing.TB
	home string // also for the state of remit
	dir  string // where the commands run
	env  []string

	names map[string]string // other names of a page, such as addresses, and those of this machine
}

func newPlace(t testing.TB) *place {
	t.Helper()
	home := t.TempDir()
	dir := filepath.Join(home, "work")
	require.NoError(t, os.Mkdir(dir, 0o700))
	path := binary(t)
	return &place{t: t, home: home, dir: dir, env: append(os.Environ(),
		"HOME="+home, "XDG_STATE_HOME="+filepath.Join(home, ".local", "state"), "XDG_CONFIG_HOME="+filepath.Join(home, ".config"),
		"PATH="+path+string(filepath.ListSeparator)+os.Getenv("PATH"), "NO_COLOR=1")}
}

// write creates a file below the folder of the commands.
func (p *place) write(name, text string) {
	p.t.Helper()
	name = filepath.Join(p.dir, name)
	require.NoError(p.t, os.MkdirAll(filepath.Dir(name), 0o700))
	require.NoError(p.t, os.WriteFile(name, []byte(text), 0o600))
}

func (p *place) content(name string) string {
	p.t.Helper()
	data, err := os.ReadFile(filepath.Join(p.dir, name))
	require.NoError(p.t, err)
	return string(data)
}

// sh runs a script and returns its output of both streams. The script must exit
// with code.
func (p *place) sh(code int, script string) string {
	p.t.Helper()
	cmd := exec.Command("sh", "-eu", "-c", script)
	cmd.Dir, cmd.Env = p.dir, p.env
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		require.Equal(p.t, code, exit.ExitCode(), "%s\n%s", script, &out)
		return out.String()
	}
	require.NoError(p.t, err)
	require.Zero(p.t, code, "%s\n%s", script, &out)
	return out.String()
}

// replaced replaces the placeholders of a text, such as FILE. Each must occur.
func replaced(t testing.TB, text string, by ...string) string {
	t.Helper()
	for i := 0; i < len(by); i += 2 {
		require.Contains(t, text, by[i])
		text = strings.ReplaceAll(text, by[i], by[i+1])
	}
	return text
}
