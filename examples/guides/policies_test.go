package guides_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/tool"

	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"

	"github.com/remit-dev/remit/perm/rego"

	"github.com/remit-dev/remit/agent"
)

// TestPolicies builds the policy of the guide step by step, and checks its
// decisions.
func TestPolicies(t *testing.T) {
	shell(t)
	p := newPlace(t)
	for n, name := range []string{"shop.rego", "first-line.rego", "budget.rego", "facts.rego", "shop_test.rego"} {
		p.write("policy/"+name, take(t, "guides/policies.md", "rego", n))
	}
	p.write("policy/data.json", take(t, "guides/policies.md", "json", 0))
	p.write("shop/src/config/site.ini", "# Maintained by web\nname = Shop\n")
	p.write("shop/customers/ann.csv", "ann\n")
	p.write("script.jsonl", `{"tool":"file_write","args":{"path":"src/cart.py","content":"x"}}`+"\n")
	out := p.sh(0, take(t, "guides/policies.md", "sh", 0))
	require.Contains(t, out, "4 tests, 0 failed")
	require.NotContains(t, out, "warning")
	p.write("input.json", `{"principal":{"id":"a","kind":"agent","roles":[]},"session":{"id":"s","labels":[],"tools":{}},
		"tool":{"name":"file_read","version":"1","tags":[],"confinement":"handles","destination":"none","idempotent":true,"risk":"undeclared","approval":false},
		"call":{"id":"c","args":{"path":"customers/ann.csv"},"effect_class":"pure","declared":true},"purpose":"run","time":"2026-01-01T00:00:00Z",
		"access":{"action":"read","dynamic":false,"resource":{"kind":"file","root":"workspace","path":"customers/ann.csv","segments":["customers","ann.csv"]}}}`)
	for i, line := range strings.Split(strings.TrimSpace(take(t, "guides/policies.md", "sh", 1)), "\n") {
		explained := p.sh([]int{0, 3, 0}[i], line)
		require.Contains(t, explained, []string{"src/cart.py", "customer data stays private", "the smallest change that lets it through"}[i])
	}

	for line, code := range map[string]int{
		`{"tool":"file_read","args":{"path":"customers/ann.csv"}}`:                                              3,
		`{"tool":"file_write","args":{"path":"other.txt","content":"x"}}`:                                       3,
		`{"tool":"file_edit","args":{"path":"src/config/site.ini","old":"# Maintained","new":"# Written"}}`:     5,
		`{"tool":"shell_run","args":{"script":"sed -i 1d src/config/site.ini"}}`:                                5,
		`{"tool":"file_write","args":{"path":"docs/a.md","content":"x"}}`:                                       3,
		`{"tool":"file_delete","args":{"path":"src/cart.py"}}`:                                                  3, // the policy does not ask
		`{"tool":"file_edit","args":{"path":"src/config/site.ini","old":"name = Shop","new":"name = My Shop"}}`: 0,
	} {
		p.write("one.jsonl", line+"\n")
		p.sh(code, "remit run --workspace shop --policy policy one.jsonl")
	}
	tried := p.sh(0, take(t, "guides/policies.md", "sh", 2))
	require.Contains(t, tried, "8 recorded decisions, 5 decided again: 5 the same, 0 loosened, 0 tightened")
	require.Equal(t, "# Maintained by web\nname = My Shop\n", p.content("shop/src/config/site.ini"))
	p.write("one.jsonl", `{"tool":"file_delete","args":{"path":"src/config/site.ini"}}`+"\n")
	p.sh(5, "remit run --workspace shop --policy policy --on-ask approve-unsafe one.jsonl")
	_, err := os.Stat(p.dir + "/shop/src/config/site.ini")
	require.NoError(t, err, "a person approved, and the postcondition holds it all the same")
}

// TestHoldRecipe: a held mail leaves with the commit, and not at all with a
// revert.
func TestHoldRecipe(t *testing.T) {
	engine, err := rego.New(rego.Options{Modules: map[string]string{"hold.rego": take(t, "guides/policies.md", "rego", 5)}})
	require.NoError(t, err)
	sent := 0
	mail, err := tool.Create("send_mail", "Send a mail.",
		func(context.Context, string) (string, error) { sent++; return "sent", nil }, tool.Effect(effect.Deferrable))
	require.NoError(t, err)
	rt, _ := runtime(t, agent.Tools(mail), agent.Policy(engine))
	s := session(t, rt)

	out, err := call(t, s, "send_mail", "hello")
	require.NoError(t, err)
	require.Equal(t, tool.StatusHeld, out.Status, "%+v", out)
	require.Equal(t, 1, sent, "it left with the commit")

	tx, err := s.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Invoke(t.Context(), "send_mail", "not this one")
	require.NoError(t, err)
	_, err = tx.Revert(t.Context(), revert.Options{})
	require.NoError(t, err)
	require.Equal(t, 1, sent, "the revert dropped it")
}
