package agentclients_test

import (
	"cmp"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const undoHead = `# Undo benchmark: real tools

This page compares remit with the undo of real tools from npm. Each step is one prompt of an agent in a new project, followed
by the tool's own undo of that prompt. A stand-in plays the model. "make undo-bench-tools" plays all of it again (` + "`TestUndoBench`" + ` in
` + "`internal/proof/agentclients`" + `), and writes this page. The [undo benchmark](undo-bench.md) covers databases and services.

%s

%s
One oracle judges all tools and knows none of them: types, bytes, modes, links, hard links, attributes, holes and times of files, and the
state of the repository. The wanted state comes from a second project in which the person made the same changes and no agent worked.

| verdict | meaning |
| --- | --- |
| exact | all is as wanted |
| bytes right | what is where is right; modes, times, links or attributes are not |
| wrong | the tool said that it undid the step, and did not; or it destroyed bytes that were not of the step |
| not restored | the tool did not say that it undid the step |
| no effect | the agent or its client refused the step |
| not played | the step was not part of the run |

The milliseconds are medians of whole processes on a loaded machine: of the agent with its prompt, and of the undo.
opencode and Cline served all steps from one process. With a file under the work of both, its time is not judged.

## The tools

%s
Gemini CLI is not driven yet. By its code, it makes a checkpoint only in a terminal, for an edit that waits for a person's approval, and none
before a command. So it takes a driver that types into a terminal.

## What they do better than remit

- **Claude Code**, **opencode** and **Cline** have a rewind of the conversation with the files, which was not played here. remit has none.
- **opencode** and **Cline** need no second program, and no hook that can fail open.

## Each step

%s
## Where remit is not exact

%s`

// updateUndoPage writes the page from the results in a folder.
func updateUndoPage(t *testing.T, dir string) {
	var all []undoResult
	for _, tool := range undoTools() {
		all = append(all, results(t, filepath.Join(dir, fileName(tool.name)))...)
	}
	commit, err := exec.Command("git", "describe", "--always").Output()
	require.NoError(t, err)
	at := fmt.Sprintf("%s, commit %s, %d steps.", time.Now().UTC().Format("2006-01-02"), strings.TrimSpace(string(commit)), len(undoSteps()))
	page := fmt.Sprintf(undoHead, at, undoSums(all), undoVersions(all), undoDetails(all), undoMisses(all))
	write(t, filepath.Join("..", "..", "..", "docs", "evidence", "undo-bench-tools.md"), page)
}

func of(all []undoResult, tool string, step string) (some []undoResult) {
	for _, r := range all {
		if r.Tool == tool && (step == "" || r.Step == step) {
			some = append(some, r)
		}
	}
	return some
}

func undoSums(all []undoResult) string {
	var b strings.Builder
	verdicts := []string{exact, bytesRight, wrongUndo, notUndone, noEffect}
	b.WriteString("| tool | steps | " + strings.Join(verdicts, " | ") + " | ms of the step + undo |\n|---|--:" + strings.Repeat("|--:", len(verdicts)+1) + "|\n")
	for _, tool := range undoTools() {
		some := of(all, tool.name, "")
		if len(some) == 0 {
			continue
		}
		fmt.Fprintf(&b, "| %s | %d", tool.name, len(some))
		for _, v := range verdicts {
			n := len(slices.DeleteFunc(slices.Clone(some), func(r undoResult) bool { return r.Verdict != v }))
			fmt.Fprintf(&b, " | %d", n)
		}
		fmt.Fprintf(&b, " | %d + %d |\n", middle(some, func(r undoResult) int64 { return r.Work }), middle(some, func(r undoResult) int64 { return r.Undo }))
	}
	return b.String()
}

func middle(all []undoResult, of func(undoResult) int64) int64 {
	slices.SortFunc(all, func(a, b undoResult) int { return cmp.Compare(of(a), of(b)) })
	return of(all[len(all)/2])
}

func undoVersions(all []undoResult) string {
	var b strings.Builder
	b.WriteString("| tool | version | how |\n| --- | --- | --- |\n")
	for _, tool := range undoTools() {
		if some := of(all, tool.name, ""); len(some) > 0 {
			if strings.HasPrefix(tool.name, "remit") {
				some[0].Version = "the commit above, with " + some[0].Version
			}
			fmt.Fprintf(&b, "| %s | %s | %s |\n", tool.name, some[0].Version, tool.how)
		}
	}
	return b.String()
}

func undoDetails(all []undoResult) string {
	var b strings.Builder
	line := "| step"
	var tools []string
	for _, tool := range undoTools() {
		if len(of(all, tool.name, "")) > 0 {
			tools = append(tools, tool.name)
			line += " | " + tool.name
		}
	}
	b.WriteString(line + " |\n|---" + strings.Repeat("|---", len(tools)) + "|\n")
	for _, step := range undoSteps() {
		fmt.Fprintf(&b, "| **%s**: %s", step.name, step.about)
		for _, tool := range tools {
			cell := "not played"
			for _, r := range of(all, tool, step.name) {
				if cell = r.Verdict; r.Claim == claimPartly && r.Verdict != notUndone {
					cell += ", reports the rest"
				}
			}
			b.WriteString(" | " + cell)
		}
		b.WriteString(" |\n")
	}
	return b.String()
}

func undoMisses(all []undoResult) string {
	var b strings.Builder
	for _, r := range all {
		if !strings.HasPrefix(r.Tool, "remit") || r.Verdict == exact {
			continue
		}
		fmt.Fprintf(&b, "- %s, **%s**: %s, and remit said %s.", r.Tool, r.Step, r.Verdict, r.Claim)
		for _, w := range r.Wrong[:min(len(r.Wrong), 2)] {
			w, _, _ = strings.Cut(w, ", digest")
			fmt.Fprintf(&b, " `%s`", w)
		}
		b.WriteString("\n")
	}
	return b.String()
}
