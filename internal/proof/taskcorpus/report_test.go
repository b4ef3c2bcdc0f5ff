package taskcorpus_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/policies"
)

var (
	packsFlag  = flag.String("packs", "", "policies to measure, separated by spaces; packs joined by + load together (default: all that restrict what follows untrusted content)")
	halfFlag   = flag.String("half", "", "measure only the tasks of one half: odd or even")
	reportFlag = flag.String("report", "", "write the report to this file, as JSON")
	eachFlag   = flag.Bool("each", false, "print each task that is not whole without a prompt, and each injection that is not stopped; of the half that is kept aside only with -half even")
)

// measured are the policies that are measured by default, as far as they exist.
var measured = []string{allowAll, "untrusted", "flow", "user_provided", "provenance", "provenance+strict", "commit-gate"}

func policyNames() []string {
	if *packsFlag != "" {
		return strings.Fields(*packsFlag)
	}
	return slices.DeleteFunc(slices.Clone(measured), func(name string) bool {
		first, _, _ := strings.Cut(name, "+")
		_, ok := policies.Pack(first)
		return name != allowAll && !ok
	})
}

// chosen returns the tasks to measure: those of the chosen half, and without
// REMIT_LONG the first of each half of each domain.
func chosen() []task {
	return slices.DeleteFunc(allTasks(), func(t task) bool {
		return *halfFlag != "" && *halfFlag != t.half() || !long() && !brief(t)
	})
}

// report is what the suite finds out about policies.
type report struct {
	Rows       []row        `json:"rows"` // by policy, half and domain; an empty half or domain is all of them
	Tasks      []taskRun    `json:"tasks"`
	Injections []attackRun  `json:"injections"`
	counts     map[key]*row // the rows by what they count
}

type key struct{ policy, half, domain string }

// row counts tasks without and with injections.
type row struct {
	Policy string `json:"policy"`
	Half   string `json:"half,omitempty"`
	Domain string `json:"domain,omitempty"`

	Tasks   int `json:"tasks"`
	Unasked int `json:"whole_without_prompt"`
	Whole   int `json:"whole"`
	Prompts int `json:"prompts"` // of all tasks without injections

	Irreversible ratio `json:"irreversible"` // injections whose effect cannot be taken back
	Reversible   ratio `json:"reversible"`
	Attacked     ratio `json:"whole_while_attacked"`
	AttackAsks   int   `json:"prompts_while_attacked"`
}

// ratio is how many injections a policy stopped, or tasks were whole, out of how many.
type ratio struct {
	N  int `json:"n"`
	Of int `json:"of"`
}

func (r *ratio) add(yes bool) {
	r.Of++
	if yes {
		r.N++
	}
}

func (r ratio) String() string { return fmt.Sprintf("%d/%d", r.N, r.Of) }

type taskRun struct {
	Policy  string `json:"policy"`
	Task    string `json:"task"`
	Half    string `json:"half"`
	Whole   bool   `json:"whole"`
	Prompts int    `json:"prompts"`
	Refused int    `json:"refused"` // honest calls that did not run
}

type attackRun struct {
	Policy     string `json:"policy"`
	Task       string `json:"task"`
	Half       string `json:"half"`
	Number     int    `json:"number"`
	Reversible bool   `json:"reversible"`
	Stopped    bool   `json:"stopped"`
	Prompts    int    `json:"prompts"`
	Whole      bool   `json:"whole"` // whether the task was whole all the same
}

// count calls add for each row that counts a task under a policy.
func (rep *report) count(policy string, t task, add func(*row)) {
	for _, k := range []key{{policy, "", ""}, {policy, t.half(), ""}, {policy, t.half(), t.domain}} {
		if rep.counts[k] == nil {
			rep.counts[k] = &row{Policy: k.policy, Half: k.half, Domain: k.domain}
		}
		add(rep.counts[k])
	}
}

// measure plays all tasks under a policy.
func (rep *report) measure(t *testing.T, policy string, tasks []task) {
	r := newRunner(t, policy)
	for _, task := range tasks {
		clean := r.play(t, task, nil, commits)
		rep.Tasks = append(rep.Tasks, taskRun{policy, task.name(), task.half(), clean.whole, clean.prompts, clean.refused})
		rep.count(policy, task, func(row *row) {
			row.Tasks++
			row.Prompts += clean.prompts
			if clean.whole {
				row.Whole++
			}
			if clean.whole && clean.prompts == 0 {
				row.Unasked++
			}
		})
		for i := range task.attacks {
			rep.attack(t, r, policy, task, i)
		}
	}
}

func (rep *report) attack(t *testing.T, r *runner, policy string, task task, i int) {
	a := &task.attacks[i]
	got := r.play(t, task, a, commits)
	rep.Injections = append(rep.Injections, attackRun{policy, task.name(), task.half(), i + 1, a.reversible, !got.harmed, got.prompts, got.whole})
	rep.count(policy, task, func(row *row) {
		row.AttackAsks += got.prompts
		row.Attacked.add(got.whole)
		if a.reversible {
			row.Reversible.add(!got.harmed)
		} else {
			row.Irreversible.add(!got.harmed)
		}
	})
}

// sort puts the rows in order: totals before halves before domains.
func (rep *report) sort(policies []string) {
	for _, policy := range policies {
		for _, half := range []string{"", "odd", "even"} {
			for _, domain := range append([]string{""}, domains...) {
				if row := rep.counts[key{policy, half, domain}]; row != nil {
					rep.Rows = append(rep.Rows, *row)
				}
			}
		}
	}
}

func (rep *report) table() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "policy\thalf\tdomain\ttasks\twhole, no prompt\twhole\tprompts/task\tstopped: irreversible\treversible\twhole while attacked\tprompts/attack")
	for _, r := range rep.Rows {
		attacks := max(r.Attacked.Of, 1)
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%d\t%d\t%.2f\t%v\t%v\t%v\t%.2f\n", r.Policy, orAll(r.Half), orAll(r.Domain), r.Tasks, r.Unasked, r.Whole,
			float64(r.Prompts)/float64(r.Tasks), r.Irreversible, r.Reversible, r.Attacked, float64(r.AttackAsks)/float64(attacks))
	}
	must(w.Flush())
	return b.String()
}

func orAll(name string) string {
	if name == "" {
		return "all"
	}
	return name
}

// each lists what costs a person something, and what a policy lets through. It
// shows tasks that are kept aside only if -half asks for them.
func (rep *report) each(tasks []task) string {
	var b strings.Builder
	hidden := func(half string) bool { return half == "even" && *halfFlag != half }
	for _, r := range rep.Tasks {
		if (!r.Whole || r.Prompts > 0) && !hidden(r.Half) {
			fmt.Fprintf(&b, "%s: %s: whole %t, %d prompts, %d honest calls did not run\n", r.Policy, r.Task, r.Whole, r.Prompts, r.Refused)
		}
	}
	for _, r := range rep.Injections {
		if !r.Stopped && !hidden(r.Half) {
			i := slices.IndexFunc(tasks, func(t task) bool { return t.name() == r.Task })
			fmt.Fprintf(&b, "%s: %s injection %d happened: %s\n", r.Policy, r.Task, r.Number, tasks[i].attacks[r.Number-1].text)
		}
	}
	return b.String()
}

// TestMeasure prints what each policy stops and what it costs.
func TestMeasure(t *testing.T) {
	tasks, names := chosen(), policyNames()
	rep := &report{counts: map[key]*row{}}
	for _, policy := range names {
		rep.measure(t, policy, tasks)
	}
	rep.sort(names)
	t.Log("\n" + rep.table())
	if *eachFlag {
		t.Log("\n" + rep.each(tasks))
	}
	if *reportFlag != "" {
		text, err := json.MarshalIndent(rep, "", "  ")
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(*reportFlag, append(text, '\n'), 0o600))
	}
	for _, r := range rep.Rows {
		checkRow(t, r)
	}
}

// checkRow checks what is known before a measurement: without a policy everything
// happens, and the policies that ask about each effect let no injected one through.
func checkRow(t *testing.T, r row) {
	switch r.Policy {
	case allowAll:
		require.Equal(t, r.Tasks, r.Unasked, r)
		require.Zero(t, r.Irreversible.N+r.Reversible.N+r.Prompts, r)
	case "untrusted":
		require.Equal(t, r.Tasks, r.Whole, "the person approves all honest calls: %v", r)
		require.Equal(t, r.Irreversible.Of, r.Irreversible.N, r)
		require.Equal(t, r.Reversible.Of, r.Reversible.N, r)
	}
}
