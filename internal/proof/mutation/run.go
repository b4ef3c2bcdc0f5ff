package mutation

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Verdict is the result of the tests on a mutant.
type Verdict struct {
	By  string // the first failed test, with its package; "": none
	Why string // why there is no result: it does not build
}

// Survived reports whether all tests passed.
func (v Verdict) Survived() bool { return v.By == "" && v.Why == "" }

// Try runs suites, each the arguments of one go test, in order, until a test
// fails. It does not change the source: the compiler reads another file.
func (m Mutant) Try(ctx context.Context, root, path, scratch string, suites [][]string) (Verdict, error) {
	file := filepath.Join(scratch, "mutant.go")
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {filepath.Join(root, filepath.FromSlash(path)): file}})
	if err != nil {
		return Verdict{}, err
	}
	list := filepath.Join(scratch, "overlay.json")
	if err := errors.Join(os.WriteFile(file, m.Text, 0o600), os.WriteFile(list, overlay, 0o600)); err != nil {
		return Verdict{}, err
	}
	for _, suite := range suites {
		args := append([]string{"test", "-json", "-vet=off", "-failfast", "-timeout", "5m", "-overlay", list}, suite...)
		cmd := exec.CommandContext(ctx, "go", args...)
		cmd.Dir, cmd.Env = root, Ordinary(os.Environ())
		out, err := cmd.CombinedOutput()
		if err == nil {
			continue
		}
		if ctx.Err() != nil {
			return Verdict{}, context.Cause(ctx)
		}
		return readVerdict(out), nil
	}
	return Verdict{}, nil
}

// Ordinary returns an environment in which tests run at their ordinary size.
func Ordinary(env []string) []string {
	return slices.DeleteFunc(env, func(v string) bool {
		return strings.HasPrefix(v, "REMIT_PROVE=") || strings.HasPrefix(v, "REMIT_LONG=")
	})
}

// event is one line of go test -json.
type event struct {
	Action, Package, Test, Output, ImportPath string
}

func readVerdict(out []byte) Verdict {
	var build strings.Builder
	failed := ""
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			continue
		}
		switch {
		case e.Action == "build-output":
			build.WriteString(e.Output)
		case e.Action == "fail" && e.Test != "":
			test, _, _ := strings.Cut(e.Test, "/")
			return Verdict{By: e.Package + " " + test}
		case e.Action == "fail" && failed == "":
			failed = e.Package
		}
	}
	switch {
	case build.Len() > 0:
		return Verdict{Why: "it does not build: " + build.String()}
	case failed != "":
		return Verdict{By: failed} // it died, or took too long
	}
	return Verdict{Why: fmt.Sprintf("go test failed and said nothing of it: %.500s", out)}
}
