package randprog_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm/process"
	"github.com/remit-dev/remit/internal/proof/randprog"
	"github.com/remit-dev/remit/internal/proof/statcheck"
	"github.com/remit-dev/remit/internal/proof/treecheck"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/builtin"
)

func TestMain(m *testing.M) {
	process.Main()
	code := m.Run()
	_ = os.RemoveAll(actorDir) // missing if no test built it
	os.Exit(code)
}

var actorDir string

// The variables that TestRandomProgramsAsUser sets for its process.
const (
	actorEnv = "REMIT_TEST_ACTOR"
	firstEnv = "REMIT_TEST_FIRST_SEED" // also set by hand, to repeat one seed
	countEnv = "REMIT_TEST_SEEDS"
)

// TestRandomPrograms runs random programs in the sandbox, reverts them, redoes
// their changes and reverts them again. After each the folder is as before, or
// the report names the path that differs.
func TestRandomPrograms(t *testing.T) {
	count := number(countEnv, statcheck.Size(40, 10_000))
	who := "as root"
	if os.Getuid() != 0 {
		who = "as an ordinary user"
	}
	tried := prove(t, number(firstEnv, 1), count)
	t.Logf("proved: random programs reverted, redone and reverted again %s: %d programs, %d violations", who, tried.programs, tried.violations)
	t.Logf("%d of %d calls refused or failed, %d paths reported as not restored; by reason: %v", tried.refused, tried.calls, tried.reported, tried.reasons)
	require.Zero(t, tried.violations)
}

// TestRandomProgramsAsUser is TestRandomPrograms by an ordinary user who
// belongs to two groups.
func TestRandomProgramsAsUser(t *testing.T) {
	if os.Getuid() != 0 {
		return // TestRandomPrograms already runs as such a user
	}
	const user, group, second = 54321, 54321, 54322
	dir, err := os.MkdirTemp("", "randprog-user")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o755))
	home := filepath.Join(dir, "home")
	require.NoError(t, os.Mkdir(home, 0o700))
	require.NoError(t, os.Chown(home, user, group))
	built, err := statcheck.Program(dir)
	require.NoError(t, err)
	data, err := os.ReadFile(built)
	require.NoError(t, err)
	self := filepath.Join(dir, "child")
	require.NoError(t, os.WriteFile(self, data, 0o755))
	cmd := exec.Command(self, "-test.run", "^TestRandomPrograms$", "-test.v", "-test.timeout", "3h")
	cmd.Env = []string{
		actorEnv + "=" + actor(t), "TMPDIR=" + home, "HOME=" + home, "PATH=/usr/local/bin:/usr/bin:/bin",
		countEnv + "=" + strconv.Itoa(number(countEnv, statcheck.Size(20, 1000))), firstEnv + "=" + strconv.Itoa(number(firstEnv, 1)),
	}
	cmd.Dir = home
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: group, Groups: []uint32{group, second}}}
	out, err := cmd.CombinedOutput()
	t.Log(string(out)) // with the line of the proof
	require.NoError(t, err)
	require.Contains(t, string(out), "as an ordinary user")
}

// number reads a count from the environment.
func number(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return otherwise
}

var built = sync.OnceValues(func() (program string, err error) {
	if actorDir, err = os.MkdirTemp("", "actor"); err != nil {
		return "", err
	}
	if err := os.Chmod(actorDir, 0o755); err != nil {
		return "", err
	}
	program = filepath.Join(actorDir, "actor")
	cmd := exec.Command("go", "build", "-o", program, "github.com/remit-dev/remit/internal/proof/randprog/actor")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return program, nil
})

// actor builds the program that the sandbox runs.
func actor(t *testing.T) string {
	t.Helper()
	if given := os.Getenv(actorEnv); given != "" {
		return given
	}
	program, err := built()
	require.NoError(t, err)
	return program
}

// resultCounts counts the results of many programs.
type resultCounts struct {
	programs, calls, refused, reported, violations int
	reasons                                        map[string]int
}

func (a *resultCounts) add(b resultCounts) {
	a.programs, a.calls, a.refused = a.programs+b.programs, a.calls+b.calls, a.refused+b.refused
	a.reported, a.violations = a.reported+b.reported, a.violations+b.violations
	for why, n := range b.reasons {
		a.reasons[why] += n
	}
}

// prove tries seeds on both processors.
func prove(t *testing.T, first, count int) resultCounts {
	t.Helper()
	program := actor(t)
	seeds, all := make(chan int), resultCounts{reasons: map[string]int{}}
	var mu sync.Mutex // never held across a wait
	var done sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), 2) {
		done.Add(1)
		go func() {
			defer done.Done()
			for seed := range seeds {
				one := try(t, program, seed)
				mu.Lock()
				all.add(one)
				mu.Unlock()
			}
		}()
	}
	for seed := first; seed < first+count; seed++ {
		seeds <- seed
	}
	close(seeds)
	done.Wait()
	return all
}

// trial is one seed.
type trial struct {
	t             *testing.T
	seed          int
	program       string
	groups        []int
	dir, plain    string // the workspace, and an equal folder without a sandbox
	resynced      bool   // plain is now a copy of dir
	rt            *agent.Runtime
	s             *agent.Session
	counts        resultCounts
	log           bytes.Buffer // log of the programs
	before, after treecheck.Tree
}

func try(t *testing.T, program string, seed int) resultCounts {
	base, err := os.MkdirTemp("", fmt.Sprint("randprog-", seed, "-"))
	if err != nil {
		t.Error(err)
		return resultCounts{violations: 1}
	}
	x := &trial{t: t, seed: seed, program: program, dir: filepath.Join(base, "ws"), plain: filepath.Join(base, "plain"), counts: resultCounts{programs: 1, reasons: map[string]int{}}}
	defer func() {
		_ = exec.Command("chmod", "-R", "u+rwx", base).Run()
		_ = os.RemoveAll(base)
	}()
	if err := x.run(base); err != nil {
		x.violation("%v", err)
	}
	return x.counts
}

// copies reports whether the sandbox works on a copy of the folder.
func (x *trial) copies() bool { return x.seed%7 == 0 }

func (x *trial) violation(format string, args ...any) {
	x.counts.violations++
	x.t.Errorf("seed %d: %s\nwhat its programs did:\n%s", x.seed, fmt.Sprintf(format, args...), x.log.String())
}

// run prepares two equal folders and runs one to four calls in one of them
// through the sandbox and in the other without. Then it reverts them.
func (x *trial) run(base string) error {
	x.groups = []int{0, 1, 2, 65534}
	if os.Getuid() != 0 {
		x.groups, _ = os.Getgroups()
	}
	for _, dir := range []string{x.dir, x.plain} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
		if _, err := x.act(dir, uint64(x.seed), 40, true, nil); err != nil {
			return err
		}
	}
	scratch := filepath.Join(base, "scratch")
	driver, err := process.New(process.Config{Path: filepath.Dir(x.program) + ":/usr/local/bin:/usr/bin:/bin", Scratch: scratch, UseCopies: x.copies()})
	if err != nil {
		return err
	}
	x.rt, err = agent.New(agent.Log(slog.New(slog.DiscardHandler)), agent.Tools(builtin.Programs()...), agent.Root("workspace", x.dir), agent.Root("programs", filepath.Dir(x.program)), agent.Driver(driver), allowAll())
	if err != nil {
		return err
	}
	defer func() {
		if err := x.rt.Close(); err != nil {
			x.violation("close: %v", err)
		}
	}()
	if x.s, err = x.rt.Session(context.Background(), perm.Principal{ID: "coder"}); err != nil {
		return err
	}
	if x.before, err = treecheck.Capture(x.dir); err != nil {
		return err
	}
	return x.transaction()
}

// act runs a program without a sandbox, with no more rights than inside.
func (x *trial) act(dir string, seed uint64, steps int, setup bool, log *bytes.Buffer) ([]byte, error) {
	args := []string{strconv.FormatUint(seed, 10), strconv.Itoa(steps)}
	if setup && os.Getuid() == 0 {
		args = append(args, "setup")
	}
	for _, g := range x.groups {
		args = append(args, strconv.Itoa(g))
	}
	cmd := exec.Command(x.program, args...)
	if !setup && os.Getuid() == 0 {
		cmd = exec.Command("setpriv", append([]string{"--bounding-set=-all", "--inh-caps=-all", "--", x.program}, args...)...)
	}
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		return out, fmt.Errorf("the actor, without a sandbox: %w: %s", err, out)
	}
	if log != nil {
		log.Write(out)
	}
	return out, nil
}

func (x *trial) transaction() error {
	ctx := context.Background()
	tx, err := x.s.Begin(ctx)
	if err != nil {
		return err
	}
	x.after = x.before
	for call := range 1 + x.seed%4 {
		if err := x.call(ctx, tx, x.seed*10+call+1, 1+(x.seed*7+call*3)%12); err != nil {
			return err
		}
	}
	if x.seed%5 != 0 { // one in five is reverted while it is open
		if err := tx.Commit(ctx); err != nil {
			return err
		}
	}
	for _, phase := range []struct {
		name string
		want treecheck.Tree
		do   func() (revert.Report, error)
	}{
		{"revert", x.before, func() (revert.Report, error) {
			if x.seed%5 == 0 {
				return tx.Revert(ctx, revert.Options{})
			}
			return x.s.Revert(ctx, tx.ID(), revert.Options{})
		}},
		{"redo", x.after, func() (revert.Report, error) { return x.rt.Redo(ctx, tx.ID(), "tester") }},
		{"second revert", x.before, func() (revert.Report, error) { return x.s.Revert(ctx, tx.ID(), revert.Options{}) }},
	} {
		rep, err := phase.do()
		if done := x.judge(phase.name, phase.want, rep, err); done {
			return nil
		}
	}
	return nil
}

// call runs one program in the sandbox, and the same program without.
func (x *trial) call(ctx context.Context, tx *agent.Txn, seed, steps int) error {
	argv := []string{filepath.Base(x.program), strconv.Itoa(seed), strconv.Itoa(steps)}
	for _, g := range x.groups {
		argv = append(argv, strconv.Itoa(g))
	}
	x.counts.calls++
	out, err := tx.Invoke(ctx, "process_run", tool.Args{"argv": argv})
	now, cerr := treecheck.Capture(x.dir)
	if cerr != nil {
		return cerr
	}
	fmt.Fprintf(&x.log, "-- call %d: %s %v\n%s", seed, out.Status, argv, out.Text)
	if err != nil {
		x.counts.refused++
		x.counts.reasons[reason(err.Error())]++
		fmt.Fprintf(&x.log, "   %v\n", err)
		if diff := treecheck.Compare(x.after, now); len(diff) > 0 && out.Status != tool.StatusUnknown {
			x.violation("a call that ended %s changed the folder: %v", out.Status, diff)
		}
		x.resync()
		return nil
	}
	x.after = now
	if os.Getuid() != 0 {
		return nil // an ordinary user's overlay separates the names of a file, and has one group
	}
	said, err := x.act(x.plain, uint64(seed), steps, false, nil)
	if err != nil {
		return err
	}
	plain, err := treecheck.Capture(x.plain)
	if err != nil {
		return err
	}
	diff := without(compare(plain, now), treecheck.Mtime, treecheck.DirMtime)
	if x.resynced {
		diff = without(diff, treecheck.Sparse)
	}
	// An overlay keeps at most 256 bytes of the path that a folder was moved
	// from. Then the program's rename fails, and mv copies.
	told := namesAll(out.Text, diff) || strings.Contains(out.Text, "cross-device link") || slices.ContainsFunc(strings.Split(out.Text, "\n"), func(line string) bool {
		return strings.HasPrefix(line, "mv ") && len(line) > 256
	})
	if len(diff) > 0 && !told {
		x.violation("the program did something else in the sandbox (%s): %v\nwithout it:\n%s", out.Text, diff, said)
	}
	if len(diff) > 0 {
		x.resync()
	}
	return nil
}

// resync makes the folder without a sandbox equal to the other one again. cp
// makes holes of zeros that a program wrote into a sparse file.
func (x *trial) resync() {
	x.resynced = true
	_ = exec.Command("chmod", "-R", "u+rwx", x.plain).Run()
	_ = os.RemoveAll(x.plain)
	if out, err := exec.Command("cp", "-a", x.dir, x.plain).CombinedOutput(); err != nil {
		x.violation("cp: %v: %s", err, out)
	}
}

// namesAll reports whether the text of a result names each path of a list.
func namesAll(answer string, diff []treecheck.Difference) bool {
	_, notes, _ := strings.Cut(answer, "[not applied: ")
	told := func(name string) bool {
		return strings.Contains(notes, strings.Trim(strconv.Quote(path.Base(name)), `"`))
	}
	return !slices.ContainsFunc(diff, func(d treecheck.Difference) bool {
		if d.Field != treecheck.Links {
			return !told(d.Path)
		}
		names := quoted.FindAllString(d.Want+d.Got, -1) // one name of them suffices
		return !slices.ContainsFunc(names, func(name string) bool {
			name, err := strconv.Unquote(name)
			return err == nil && told(name)
		})
	})
}

// quoted matches the names in the text of a difference.
var quoted = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

// judge compares the folder with the expected one, and each difference with the
// report. It reports whether the trial is over.
func (x *trial) judge(phase string, want treecheck.Tree, rep revert.Report, err error) bool {
	now, cerr := treecheck.Capture(x.dir)
	if cerr != nil {
		x.violation("after the %s: %v", phase, cerr)
		return true
	}
	named, folders := map[string]bool{}, map[string]bool{}
	var paths []string
	for _, item := range rep.NotReverted() {
		named[item.Resource] = true
		if r, err := perm.ParseResource(item.Resource); err == nil {
			folders[path.Dir(r.Path())] = true
			paths = append(paths, r.Path())
		}
		x.counts.reported++
		x.counts.reasons[phase+": "+reason(item.Why)]++
	}
	if err != nil && len(named) == 0 {
		x.violation("%s: %v", phase, err)
		return true
	}
	var silent []treecheck.Difference
	for _, d := range compare(want, now) {
		if d.Field == treecheck.DirMtime && folders[d.Path] {
			continue // a name in it differs
		}
		if d.Field == treecheck.Links && slices.ContainsFunc(paths, func(p string) bool { return strings.Contains(d.Want+d.Got, strconv.Quote(p)) }) {
			continue // another name of the file differs
		}
		res, err := perm.FileResource("workspace", d.Path)
		if err != nil || !named[res.String()] {
			silent = append(silent, d)
		}
	}
	if len(silent) > 0 {
		x.violation("after the %s, which did not report it: %v\nreport: %+v", phase, silent, rep.NotReverted())
	}
	return len(named) > 0 || len(silent) > 0
}

// slack is how many bytes of zeros may be on disk instead of a hole: a smaller
// hole saves no significant space.
const slack = 64 << 10

// compare skips files that have more holes than before, or hardly fewer: their
// bytes are equal.
func compare(want, got treecheck.Tree) []treecheck.Difference {
	room := func(t treecheck.Tree) map[string]int64 {
		all := map[string]int64{}
		for _, e := range t.Entries {
			all[e.Path] = e.Data
		}
		return all
	}
	wanted, found := room(want), room(got)
	return slices.DeleteFunc(treecheck.Compare(want, got), func(d treecheck.Difference) bool {
		return d.Field == treecheck.Sparse && found[d.Path] <= wanted[d.Path]+slack
	})
}

func without(all []treecheck.Difference, fields ...treecheck.Field) []treecheck.Difference {
	return slices.DeleteFunc(all, func(d treecheck.Difference) bool { return slices.Contains(fields, d.Field) })
}

// reason returns the common part of texts with one cause: the words without the
// quoted names.
func reason(text string) string {
	var b strings.Builder
	for i, part := range strings.Split(text, `"`) {
		if i%2 == 0 {
			b.WriteString(part)
		}
	}
	text, _, _ = strings.Cut(strings.Join(strings.Fields(b.String()), " "), " (call c_")
	return text[:min(len(text), 160)]
}

func allowAll() agent.Option {
	return agent.Policy(perm.EngineFunc(func(context.Context, perm.Request) (perm.Decision, error) {
		return perm.NewDecision(perm.Allow, perm.Details{Reasons: []perm.Reason{{Text: "everything"}}}), nil
	}))
}

// TestActsAlike checks that two equal folders are equal after the same program.
func TestActsAlike(t *testing.T) {
	var trees [2]treecheck.Tree
	var lines [2][]string
	for i := range trees {
		dir := t.TempDir()
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Chdir(dir)
			for seed := range uint64(20) {
				require.NoError(t, randprog.Act(randprog.Config{
					Seed: seed, Steps: 40, Setup: os.Getuid() == 0, Groups: []int{os.Getgid()},
					Log: func(line string) { lines[i] = append(lines[i], line) },
				}))
			}
		})
		var err error
		trees[i], err = treecheck.Capture(dir)
		require.NoError(t, err)
	}
	require.Equal(t, lines[0], lines[1])
	require.Empty(t, without(treecheck.Compare(trees[0], trees[1]), treecheck.Mtime, treecheck.DirMtime))
	done := strings.Join(lines[0], "\n")
	for _, op := range []string{"create", "punch", "relink", "exchange", "acl", "link ", "tar", "rename folder", "attribute"} {
		require.Contains(t, done, strings.Replace(op, "relink", "link again", 1))
	}
}
