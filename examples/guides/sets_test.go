package guides_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/policies"
)

// everySet has a rule of each set, for one call of file_write.
const everySet = `package remit

allow contains "files are written"

deny contains "no licence is changed" if input.access.resource.name == "LICENSE"

ask contains "a person looks at scripts" if input.access.resource.ext == ".sh"

hold contains "mails leave with the transaction" if input.access.resource.ext == ".eml"

limit contains "too deep" if count(input.access.resource.segments) > 10

limit contains {"budget": "writes", "max": 5, "per": "session"} if input.access.resource.ext == ".log"

hint contains "write to drafts"

require contains "verify"

mask contains "file://workspace/private/**"

label contains "wrote"

redact contains "/args/content"

ensure contains "the file is empty" if input.output.bytes == 0

hide contains "nobody needs it"

deny_commit contains "an outcome is unknown" if input.txn.totals.unknown > 0

ask_commit contains "mails leave" if input.txn.totals.held > 0
`

// TestRuleSets checks that the result of each set arrives, with the command and
// in Go.
func TestRuleSets(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs", "reference", "policy.md"))
	require.NoError(t, err)
	_, table, _ := strings.Cut(string(page), "<!-- generated from the code: sets -->")
	table, _, _ = strings.Cut(table, "A budget,")
	sets := regexp.MustCompile("(?m)^\\| `(\\w+)` \\|").FindAllStringSubmatch(table, -1)
	require.Greater(t, len(sets), 10)
	for _, set := range sets {
		require.Contains(t, everySet, "\n"+set[1]+" contains ", "each set has a rule")
	}
	engine, err := rego.New(rego.Options{Modules: map[string]string{"sets.rego": everySet}})
	require.NoError(t, err)
	p := newPlace(t)
	p.write("sets.rego", everySet)
	file := func(name, ext string) string {
		return `{"access":{"resource":{"text":"file://workspace/` + name + `","path":"` + name + `","segments":["` + name + `"],"name":"` + name + `","ext":"` + ext + `"}}}`
	}
	for _, tt := range []struct {
		patch  string
		effect perm.Effect
		code   int
		member string // of the command's output
		says   []string
	}{
		{file("a.txt", ".txt"), perm.Allow, 0, "reasons", []string{"files are written"}},
		{file("LICENSE", ""), perm.Deny, 3, "reasons", []string{"no licence is changed"}},
		{file("a.sh", ".sh"), perm.Ask, 4, "reasons", []string{"a person looks at scripts"}},
		{`{"call":{"effect_class":"deferrable"},` + file("a.eml", ".eml")[1:], perm.Hold, 0, "reasons", []string{"mails leave with the transaction"}},
		{file("a.log", ".log"), perm.Allow, 0, "notes", nil},
		{`{"access":{"resource":{"segments":["1","2","3","4","5","6","7","8","9","10","11"]}}}`, perm.Deny, 3, "reasons", []string{"too deep"}},
		{file("a.txt", ".txt"), perm.Allow, 0, "hints", []string{"write to drafts"}},
		{file("a.txt", ".txt"), perm.Allow, 0, "require", []string{"verify"}},
		{file("a.txt", ".txt"), perm.Allow, 0, "mask", []string{"file://workspace/private/**"}},
		{file("a.txt", ".txt"), perm.Allow, 0, "label", []string{"wrote"}},
		{file("a.txt", ".txt"), perm.Allow, 0, "redact", []string{"/args/content"}},
		{`{"purpose":"verify","output":{"bytes":0},"changes":[]}`, perm.Deny, 3, "ensure", []string{"the file is empty"}},
		{`{"purpose":"list","call":{"args":null}}`, perm.Allow, 0, "hide", []string{"nobody needs it"}},
		{commits(`"totals":{"effects":1,"unknown":1,"held":0}`), perm.Deny, 3, "reasons", []string{"an outcome is unknown"}},
		{commits(`"totals":{"effects":1,"unknown":0,"held":1}`), perm.Ask, 4, "reasons", []string{"mails leave"}},
	} {
		doc := document(t, tt.patch)
		var request perm.Request
		require.NoError(t, json.Unmarshal([]byte(doc), &request))
		decided, err := engine.Decide(t.Context(), request)
		require.NoError(t, err)
		require.Equal(t, tt.effect, decided.Effect(), "%s %+v", doc, decided.Details())
		got := map[string][]string{
			"hints": decided.Details().Hints, "mask": decided.Details().Masks, "label": decided.Details().Labels, "redact": decided.Details().Redact,
			"reasons": ofReasons(decided.Reasons()), "require": ofReasons(decided.Details().Requires), "ensure": ofReasons(decided.Details().FailedPostconditions), "hide": ofReasons(decided.Details().HideReasons),
		}
		require.Equal(t, tt.says, got[tt.member], tt.member)

		p.write("input.json", doc)
		var answer map[string]any
		require.NoError(t, json.Unmarshal([]byte(p.sh(tt.code, "remit policy eval sets.rego --json --input input.json")), &answer))
		require.Equal(t, tt.effect.String(), answer["effect"])
		for _, text := range tt.says {
			require.Contains(t, texts(answer[tt.member]), text)
		}
		if tt.member == "notes" {
			require.Len(t, decided.Limits(), 1)
			require.Equal(t, "writes", decided.Limits()[0].Budget)
			require.Contains(t, texts(answer["notes"])[0], `the budget "writes" is not held here`)
		}
	}
}

func ofReasons(all []perm.Reason) (out []string) {
	for _, r := range all {
		out = append(out, r.Text)
	}
	return out
}

// TestPacks checks that each pack decides, by its name in the command and as a
// source in Go, alone or with another one.
func TestPacks(t *testing.T) {
	p := newPlace(t)
	covered := map[string]bool{}
	const (
		write  = `{"session":{"labels":[]}}`
		page   = `{"tool":{"name":"http_get","destination":"third_party","can_revert":false},"call":{"effect_class":"pivot"},"access":{"action":"connect","user_provided":false,"method":"GET","resource":{"kind":"https","text":"https://a.example/x","root":null,"path":"/x","segments":null,"name":null,"ext":null,"scheme":"https","host":"a.example","port":443}}}`
		chosen = `{"session":{"labels":["untrusted"]},"call":{"values":[{"pointer":"/path","role":"authority","origins":["untrusted"],"short":false}]}}`
		leaves = `{"session":{"labels":["private","untrusted"]},"tool":{"name":"http_post","destination":"model_chosen","can_revert":false},"call":{"effect_class":"pivot"},"access":{"action":"connect","method":"POST","user_provided":true,"resource":{"kind":"https","text":"https://a.example/x","root":null,"path":"/x","segments":null,"name":null,"ext":null,"scheme":"https","host":"a.example","port":443}}}`
	)
	for _, tt := range []struct {
		packs  []string
		patch  string
		effect perm.Effect
	}{
		{[]string{"workspace"}, write, perm.Allow},
		{[]string{"readonly"}, write, perm.Deny},
		{[]string{"askall"}, write, perm.Ask},
		{[]string{"workspace", "untrusted"}, `{"session":{"labels":["untrusted"]}}`, perm.Ask},
		{[]string{"workspace", "flow"}, leaves, perm.Deny},
		{[]string{"coding-agent"}, `{"tool":{"name":"client_write"}}`, perm.Allow},
		{[]string{"workspace", "user_provided"}, page, perm.Deny},
		{[]string{"coding-agent"}, `{"tool":{"name":"client_write"}}`, perm.Allow},
		{[]string{"workspace", "provenance"}, chosen, perm.Ask},
		{[]string{"workspace", "commit-gate"}, chosen, perm.Allow},
	} {
		doc := document(t, tt.patch)
		var request perm.Request
		require.NoError(t, json.Unmarshal([]byte(doc), &request))
		var sources []rego.Source
		command := "remit policy eval --json --input input.json"
		for _, name := range tt.packs {
			pack, ok := policies.Pack(name)
			require.True(t, ok)
			sources = append(sources, rego.Source{FS: pack, Prefix: policies.Prefix})
			command += " builtin:" + name
			covered[name] = true
		}
		engine, err := rego.New(rego.Options{Sources: sources})
		require.NoError(t, err, tt.packs)
		decided, err := engine.Decide(t.Context(), request)
		require.NoError(t, err, tt.packs)
		require.Equal(t, tt.effect, decided.Effect(), "%v %v", tt.packs, decided.Reasons())

		p.write("input.json", doc)
		var answer map[string]any
		code := map[perm.Effect]int{perm.Allow: 0, perm.Ask: 4, perm.Deny: 3}[tt.effect]
		require.NoError(t, json.Unmarshal([]byte(p.sh(code, command)), &answer))
		require.Equal(t, tt.effect.String(), answer["effect"])
		require.Contains(t, texts(answer["reasons"]), decided.Reasons()[0].Text)
	}
	require.ElementsMatch(t, policies.Names(), slices.Collect(maps.Keys(covered)))
}

// TestExtendPack checks that a file beside the pack of coding agents adds
// elements to its sets.
func TestExtendPack(t *testing.T) {
	own := fstest.MapFS{"own.rego": {Data: []byte(take(t, "reference/policy.md", "rego", 11))}}
	page := `{"tool":{"name":"client_fetch"},"call":{"args":{"url":"https://wiki.example.com/a"}},"access":{"action":"connect","method":"GET","resource":{"kind":"https","text":"https://wiki.example.com/a","root":null,"path":"/a","segments":null,"name":null,"ext":null,"scheme":"https","host":"wiki.example.com","port":443}}}`
	var request perm.Request
	require.NoError(t, json.Unmarshal([]byte(document(t, page)), &request))
	for want, sources := range map[perm.Effect][]rego.Source{
		perm.Ask:   {{FS: policies.CodingAgent()}},
		perm.Allow: {{FS: policies.CodingAgent()}, {FS: own}},
	} {
		engine, err := rego.New(rego.Options{Sources: sources})
		require.NoError(t, err)
		decided, err := engine.Decide(t.Context(), request)
		require.NoError(t, err)
		require.Equal(t, want, decided.Effect(), decided.Reasons())
	}
}
