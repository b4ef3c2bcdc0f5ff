package taskcorpus_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/provenance"
)

// originLog allows everything and keeps the values of each call.
type originLog map[string][]perm.ValueFacts // by tool; the last call counts

func (l originLog) Decide(_ context.Context, r perm.Request) (perm.Decision, error) {
	if r.Call.Values != nil {
		l[r.Tool.Name] = r.Call.Values
	}
	return perm.NewDecision(perm.Allow, perm.Details{Reasons: []perm.Reason{{Text: "everything"}}}), nil
}

// of returns role and origins of an argument.
func (l originLog) of(tool, pointer string) string {
	for _, v := range l[tool] {
		if v.Pointer == pointer {
			return v.Role + " " + strings.Join(slices.Sorted(slices.Values(v.Origins)), "+")
		}
	}
	return "none"
}

// TestOrigins checks that the declarations of the tools and the words of the person
// reach a policy: roles of arguments, trust of fields, and what was heard.
func TestOrigins(t *testing.T) {
	seen := originLog{}
	r := startRunner(t, seen)
	for name, tt := range map[string]struct {
		task          string
		attack        int // 0: none
		tool, pointer string
		want          string
	}{
		"an address that the person named":     {"mail/01", 0, "forward_mail", "/to/0", "authority person"},
		"an ID of the service":                 {"mail/01", 0, "forward_mail", "/id", "authority trusted"},
		"a text of the model":                  {"mail/01", 0, "forward_mail", "/note", "content "},
		"a contact":                            {"mail/05", 0, "send_mail", "/to/0", "authority trusted"},
		"the address of a hostile text":        {"mail/01", 1, "forward_mail", "/to/0", "authority untrusted"},
		"an address that is written otherwise": {"mail/01", 2, "forward_mail", "/to/0", "authority "},
		"the amount of a document":             {"bank/04", 0, "transfer", "/amount", "authority untrusted"},
		"the amount that the person named":     {"bank/03", 0, "transfer", "/amount", "authority person"},
		"an ID that chooses what is read":      {"mail/01", 0, "read_mail", "/id", "selector trusted"},
	} {
		t.Run(name, func(t *testing.T) {
			clear(seen)
			all := allTasks()
			task := all[slices.IndexFunc(all, func(one task) bool { return one.name() == tt.task })]
			var hostile *attack
			if tt.attack > 0 {
				hostile = &task.attacks[tt.attack-1]
				if len(hostile.does) > 0 { // the honest calls of the same tool would count
					task.does = task.does[:2]
				}
			}
			r.play(t, task, hostile, commits)
			require.Equal(t, tt.want, seen.of(tt.tool, tt.pointer))
		})
	}
	require.Equal(t, provenance.Trusted, r.host.declared["read_mail"].fields["/attachments/*/id"])
}
