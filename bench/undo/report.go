package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// names returns the methods, in the order in which they ran.
func names(all []result) (list []string) {
	for _, r := range all {
		if !slices.Contains(list, r.method) {
			list = append(list, r.method)
		}
	}
	return list
}

// sum is the result of one method for all side effects.
type sum struct {
	runs, exact, inTime, falsely, reported int
	foreign, lost, left, doubled, refused  int
	stored                                 int64
	worked, revertTime                     time.Duration
}

func sums(all []result, way string) (s sum) {
	add := func(n *int, when bool) {
		if when {
			*n++
		}
	}
	for _, r := range all {
		if r.method != way {
			continue
		}
		s.runs++
		add(&s.exact, r.exact)
		add(&s.inTime, r.exact && r.inTime)
		add(&s.falsely, r.falsely)
		add(&s.reported, !r.exact && !r.falsely)
		add(&s.refused, r.noEffect)
		s.foreign, s.lost, s.left, s.doubled = s.foreign+r.foreign, s.lost+r.lost, s.left+min(r.left, 1), s.doubled+r.doubled
		s.stored += r.stored
		s.worked, s.revertTime = s.worked+r.worked, s.revertTime+r.revertTime
	}
	return s
}

// table returns a table with a line for each method, and one for each side
// effect.
func table(all []result) string {
	var b strings.Builder
	b.WriteString("| | " + strings.Join(names(all), " | ") + " |\n|---" + strings.Repeat("|--:", len(names(all))) + "|\n")
	line := func(what string, cell func(s sum) string) {
		b.WriteString("| " + what)
		for _, way := range names(all) {
			b.WriteString(" | " + cell(sums(all, way)))
		}
		b.WriteString(" |\n")
	}
	count := func(get func(s sum) int) func(s sum) string { return func(s sum) string { return fmt.Sprint(get(s)) } }
	line("side effects", count(func(s sum) int { return s.runs }))
	line("**restored exactly**", func(s sum) string { return fmt.Sprintf("**%d**", s.exact) })
	line("and with the times of all files", count(func(s sum) int { return s.inTime }))
	line("not restored, and reported", count(func(s sum) int { return s.reported }))
	line("**falsely reported as undone**", func(s sum) string { return fmt.Sprintf("**%d**", s.falsely) })
	line("with effects left over", count(func(s sum) int { return s.left }))
	line("foreign things destroyed", count(func(s sum) int { return s.foreign }))
	line("effects lost that should stay", count(func(s sum) int { return s.lost }))
	line("effects doubled", count(func(s sum) int { return s.doubled }))
	line("no effect in the first place", count(func(s sum) int { return s.refused }))
	line("bytes stored, all side effects", func(s sum) string { return bytesOf(s.stored) })
	line("time of the steps, median", func(s sum) string { return "" })
	text := b.String()
	text = text[:strings.LastIndex(strings.TrimSuffix(text, "\n"), "\n")+1]
	for _, m := range []struct {
		what string
		get  func(r result) time.Duration
	}{{"time of the steps, median", func(r result) time.Duration { return r.worked }}, {"time of the undo, median", func(r result) time.Duration { return r.revertTime }}} {
		text += "| " + m.what
		for _, way := range names(all) {
			text += fmt.Sprintf(" | %d ms", median(all, way, m.get).Milliseconds())
		}
		text += " |\n"
	}
	return text
}

func median(all []result, way string, get func(r result) time.Duration) time.Duration {
	var list []time.Duration
	for _, r := range all {
		if r.method == way {
			list = append(list, get(r))
		}
	}
	slices.Sort(list)
	return list[len(list)/2]
}

func bytesOf(n int64) string {
	switch {
	case n >= 10<<20:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 10<<10:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d B", n)
}

// details returns a table with a cell for each side effect and method.
func details(all []result) string {
	var b strings.Builder
	b.WriteString("| side effect | " + strings.Join(names(all), " | ") + " |\n|---" + strings.Repeat("|---", len(names(all))) + "|\n")
	for _, s := range scenarios() {
		b.WriteString("| **" + s.name + "**: " + s.about)
		for _, way := range names(all) {
			for _, r := range all {
				if r.scenario == s.name && r.method == way {
					b.WriteString(" | " + r.cell())
				}
			}
		}
		b.WriteString(" |\n")
	}
	return b.String()
}

// cell describes the result for one side effect.
func (r result) cell() string {
	var parts []string
	switch {
	case r.exact && r.noEffect:
		parts = append(parts, "nothing happened")
	case r.exact:
		parts = append(parts, "exact")
	case r.falsely:
		parts = append(parts, "**falsely \"undone\"**")
	default:
		parts = append(parts, "not undone, reported")
	}
	if r.exact && r.claim == partly {
		parts = append(parts, "reports the rest")
	}
	for _, p := range []struct {
		n    int
		what string
	}{{r.foreign, "foreign destroyed"}, {r.lost, "lost"}, {r.left, "left over"}, {r.doubled, "doubled"}} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.what))
		}
	}
	return fmt.Sprintf("%s<br>%s, %d + %d ms", strings.Join(parts, ", "), bytesOf(r.stored), r.worked.Milliseconds(), r.revertTime.Milliseconds())
}

const head = `# Undo benchmark

This benchmark runs side effects and reverts them: with remit, and with stand-ins for common methods. **We wrote the stand-ins.** No
other product ran. Each is the best form of its method that we know, and uses the real git and cp. It reports the effects that it cannot
see, if it can know of them. Its code states its limits: [git](../../bench/undo/git.go), [copies](../../bench/undo/copies.go),
[saga](../../bench/undo/saga.go). remit is the real command with its journal on disk, under a policy that allows everything.
"make undo-bench" writes this page and [each side effect](undo-bench-effects.md).

%s

![How many side effects are restored exactly, and how many are falsely reported as undone](undo-bench.svg)

%s
| row | meaning |
| --- | --- |
| restored exactly | type, mode bits, bytes, links, hard links, extended attributes, holes, .git, rows, tables and objects of the service are as before; work of another program is unchanged |
| foreign things destroyed | an undo overwrote a version of another program (git has a copy in its repository, and does not report it) |
| effects lost | the undo removed an effect that must stay |
| left over | an effect stayed that the undo must remove |
| no effect in the first place | the step was refused, or died before any effect |

One oracle judges all methods and knows none of them. An agent repeats a failed step. It does not repeat a step with unknown
outcome.

## Side effects that remit did not restore

%s`

const effectsHead = `# Undo benchmark: each side effect

[Undo benchmark](undo-bench.md) has the sums, the terms and the machine. "make undo-bench" writes this page.

Below each outcome: bytes stored, and milliseconds of the steps and of the undo. remit returns each step after it is durable in the
journal. The stand-ins sync nothing, except the syncs of git. A killed method starts again and undoes everything.

%s`

// page returns the page with the sums.
func page(at string, all []result) string {
	return fmt.Sprintf(head, at, table(all), misses(all))
}

// effectsPage returns the page with each side effect.
func effectsPage(all []result) string {
	return fmt.Sprintf(effectsHead, details(all))
}

// misses returns the side effects that remit did not restore.
func misses(all []result) string {
	var b strings.Builder
	for _, r := range all {
		if r.method != "remit" || r.exact && !r.noEffect {
			continue
		}
		what := "was not restored, and remit reported it: " + r.claim
		switch {
		case r.falsely:
			what = "**was not restored, and remit reported success**"
		case r.exact:
			what = "had no effect in the first place: it was refused, or killed before any effect"
		}
		b.WriteString("- **" + r.scenario + "** " + what)
		if len(r.wrong) > 0 {
			b.WriteString(" (" + strings.Join(r.wrong[:min(3, len(r.wrong))], ", ") + ")")
		}
		b.WriteString(".\n")
	}
	return b.String()
}

// where returns the date, the version and the machine.
func where() string {
	var name unix.Utsname
	_ = unix.Uname(&name)
	commit, _ := exec.Command("git", "describe", "--always", "--dirty").Output()
	version, _ := exec.Command("git", "--version").Output()
	return fmt.Sprintf("%s, commit %s; %s %s, %d processors, %s, %s.", time.Now().UTC().Format("2006-01-02"), bytes.TrimSpace(commit),
		unix.ByteSliceToString(name.Sysname[:]), unix.ByteSliceToString(name.Release[:]), runtime.NumCPU(), fileSystem(os.TempDir()), bytes.TrimSpace(version))
}

func fileSystem(dir string) string {
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) != nil {
		return "an unknown file system"
	}
	switch st.Type {
	case unix.EXT4_SUPER_MAGIC:
		return "ext4"
	case unix.BTRFS_SUPER_MAGIC:
		return "btrfs"
	case unix.XFS_SUPER_MAGIC:
		return "xfs"
	case unix.TMPFS_MAGIC:
		return "tmpfs"
	case unix.OVERLAYFS_SUPER_MAGIC:
		return "overlayfs"
	}
	return fmt.Sprintf("file system %x", st.Type)
}
