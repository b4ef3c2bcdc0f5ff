package agent_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"
)

// TestForeignModule builds a module that is not this one and that tries to
// skip, reorder or forge a step, a context, a permit or a decision, or to use one
// after its call. Each attempt does not compile, or is refused when run.
func TestForeignModule(t *testing.T) {
	repo, err := filepath.Abs("..")
	require.NoError(t, err)
	dir := foreignModule(t, repo)
	cases, err := os.ReadDir(filepath.Join(dir, "compile"))
	require.NoError(t, err)
	require.NotEmpty(t, cases)
	// The command stops at an import that it refuses. It compiles all other cases, and prints the errors of each below its name.
	var refused, others []string
	for _, c := range cases {
		if path := "./compile/" + c.Name(); strings.HasPrefix(c.Name(), "import") {
			refused = append(refused, path)
		} else {
			others = append(others, path)
		}
	}
	out, err := goCommand(dir, append([]string{"vet"}, others...)...)
	require.Error(t, err, "these must not compile")
	said := map[string]string{}
	for _, part := range strings.Split("\n"+out, "\n# example.com/foreign/compile/")[1:] {
		name, errors, _ := strings.Cut(part, "\n")
		said["./compile/"+name] += errors
	}
	for _, path := range refused {
		out, err := goCommand(dir, "vet", path)
		require.Error(t, err, "this must not compile")
		said[path] = out
	}
	for _, path := range append(refused, others...) {
		t.Run(strings.TrimPrefix(path, "./compile/"), func(t *testing.T) {
			source, err := os.ReadFile(filepath.Join(dir, path, "a.go"))
			require.NoError(t, err)
			want, ok := strings.CutPrefix(strings.SplitN(string(source), "\n", 2)[0], "// want: ")
			require.True(t, ok, "the first line says what the compiler must answer")
			require.Contains(t, said[path], want)
		})
	}
	t.Run("refused when run", func(t *testing.T) {
		out, err := goCommand(dir, "run", "./run")
		require.NoError(t, err, "%s", out)
		require.NotContains(t, out, "LET THROUGH")
		program, err := os.ReadFile(filepath.Join(dir, "run", "main.go"))
		require.NoError(t, err)
		require.Equal(t, strings.Count(string(program), "refused(\""), strings.Count(out, "refused:"), "every attempt ran: %s", out)
	})
}

func foreignModule(t *testing.T, repo string) string {
	dir := t.TempDir()
	archive, err := txtar.ParseFile(filepath.Join(repo, "testdata", "foreign", "cases.txtar"))
	require.NoError(t, err)
	for _, f := range archive.Files {
		path := filepath.Join(dir, filepath.FromSlash(f.Name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, f.Data, 0o644))
	}
	mod, err := os.ReadFile(filepath.Join(repo, "go.mod"))
	require.NoError(t, err)
	text := strings.Replace(string(mod), "module github.com/remit-dev/remit", "module example.com/foreign", 1)
	text += "\nrequire github.com/remit-dev/remit v0.0.0\n\nreplace github.com/remit-dev/remit => " + repo + "\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte(text), 0o644))
	sum, err := os.ReadFile(filepath.Join(repo, "go.sum"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.sum"), sum, 0o644))
	return dir
}

func goCommand(dir string, args ...string) (string, error) {
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS="+os.Getenv("GOFLAGS")+" -mod=mod", "GOWORK=off", "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	return string(out), err
}
