package reverttest

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/remit-dev/remit/provenance"
	"github.com/remit-dev/remit/tool"
)

// Record returns the grade as a file stores it, with the build that gave it.
func (r Result) Record() (provenance.GradeRecord, error) {
	rec := provenance.GradeRecord{Tool: r.Tool, Digest: r.Digest, Grade: r.Grade, Kit: kitVersion, Seed: r.Seed, Runs: r.Runs, Build: build()}
	if r.Against != nil {
		rec.Against = r.Against.What
	}
	return rec.Sealed()
}

// build reads the build information of this program.
func build() provenance.GradeBuild {
	b := provenance.GradeBuild{Version: "(devel)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	b.Module = info.Main.Path
	if info.Main.Version != "" {
		b.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

// The environment variables of [Test] and [SaveGrades].
const (
	onlyEnv   = "REVERTTEST_ONLY"   // the name of one run: Test tries that alone, and prints its trace
	updateEnv = "REVERTTEST_UPDATE" // not empty: SaveGrades writes the file
)

// Test grades a tool. It fails the test if the grade is worse than the wanted
// one, with the finding that prevents it and the command that repeats it.
func Test(t testing.TB, of tool.Tool, want provenance.Grade, c Config) Result {
	t.Helper()
	if only := os.Getenv(onlyEnv); only != "" {
		c.Only = only
	}
	r, err := Grade(of, c)
	if err != nil {
		t.Fatal(err)
	}
	if c.Only != "" {
		t.Logf("%v", r.last)
		return r
	}
	switch {
	case !r.Grade.AtLeast(want):
		t.Errorf("tool %s is %s, and should be %s; seed %d\n%v%s", r.Tool, r.Grade, want, r.Seed, r.Against, reproduce(t, r))
	case r.Against != nil:
		t.Logf("tool %s is %s, after %d runs; against a better grade speaks:\n%v", r.Tool, r.Grade, r.Runs, r.Against)
	default:
		t.Logf("tool %s is %s, after %d runs", r.Tool, r.Grade, r.Runs)
	}
	return r
}

func reproduce(t testing.TB, r Result) string {
	if r.Against == nil || r.Against.Run == "" {
		return ""
	}
	names := strings.Split(t.Name(), "/")
	for i, name := range names {
		names[i] = "^" + name + "$"
	}
	return fmt.Sprintf("\nagain: %s='%s' go test -v -run '%s' .", onlyEnv, r.Against.Run, strings.Join(names, "/"))
}

// SaveGrades compares a file of grades with the results. It fails the test if a
// grade is missing or different, or belongs to a tool that no longer exists. If
// REVERTTEST_UPDATE is set, it writes the file and keeps unchanged grades.
func SaveGrades(t testing.TB, file string, results ...Result) {
	t.Helper()
	if os.Getenv(onlyEnv) != "" {
		return
	}
	var was []provenance.GradeRecord
	data, err := os.ReadFile(file)
	if err == nil {
		was, err = provenance.ReadGrades(data)
	}
	update := os.Getenv(updateEnv) != ""
	if err != nil && !update {
		t.Errorf("%v%s", err, mend(t))
		return
	}
	var now []provenance.GradeRecord
	for _, r := range results {
		rec, err := r.Record()
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(was, func(w provenance.GradeRecord) bool {
			return w.Digest == rec.Digest && w.Tool == rec.Tool && w.Grade == rec.Grade && w.Kit == rec.Kit
		})
		switch {
		case i >= 0:
			rec = was[i]
		case !update:
			t.Errorf("%s does not hold that tool %s with digest %s is %s%s", file, r.Tool, r.Digest, r.Grade, mend(t))
		}
		now = append(now, rec)
	}
	if update {
		for i := range now {
			if now[i].Build.Revision == "" && now[i].Kit == kitVersion {
				now[i] = fromGit(t, now[i], filepath.Base(file))
			}
		}
	}
	if !update {
		for _, w := range was {
			if !slices.ContainsFunc(now, func(n provenance.GradeRecord) bool { return n.Digest == w.Digest }) {
				t.Errorf("%s holds a grade of tool %s with digest %s, which nobody graded here%s", file, w.Tool, w.Digest, mend(t))
			}
		}
		return
	}
	if err := save(file, now); err != nil {
		t.Fatal(err)
	}
}

// fromGit adds the source to a build that has none, such as a test. Files of
// grades are not part of the source.
func fromGit(t testing.TB, r provenance.GradeRecord, grades string) provenance.GradeRecord {
	revision, err := exec.CommandContext(t.Context(), "git", "rev-parse", "HEAD").Output()
	if err != nil {
		return r // not a git working tree
	}
	changed, err := exec.CommandContext(t.Context(), "git", "status", "--porcelain", "--", ":/", ":(top,exclude,glob)**/"+grades).Output()
	if err != nil {
		return r
	}
	r.Build.Revision, r.Build.Modified = strings.TrimSpace(string(revision)), len(changed) > 0
	sealed, err := r.Sealed()
	if err != nil {
		t.Fatal(err)
	}
	return sealed
}

func mend(t testing.TB) string {
	if os.Getenv(updateEnv) != "" {
		return ""
	}
	return fmt.Sprintf("; to write what was found: %s=1 go test -run '^%s$' .", updateEnv, strings.Split(t.Name(), "/")[0])
}

func save(file string, records []provenance.GradeRecord) error {
	var b strings.Builder
	b.WriteString("[")
	for i, r := range records {
		line, err := json.Marshal(r)
		if err != nil {
			return err
		}
		b.WriteString(map[bool]string{true: "\n  ", false: ",\n  "}[i == 0] + string(line))
	}
	b.WriteString("\n]\n")
	return os.WriteFile(file, []byte(b.String()), 0o600)
}
