package guides_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
)

// ordinary is an input to which no rule of the guide objects.
const ordinary = `{
	"purpose": "run", "time": "2026-01-02T03:04:05Z",
	"principal": {"id": "ada", "kind": "agent", "roles": []},
	"session": {"id": "s_1", "labels": [], "tools": {}, "recent": []},
	"txn": {"id": "t_1", "calls": 0, "depth": 0},
	"tool": {"name": "file_write", "version": "1", "tags": [], "digest": "", "provenance": "builtin", "can_verify": true, "can_revert": true,
		"confinement": "handles", "coverage": "confined", "destination": "none", "grade": "ungraded", "idempotent": true, "risk": "low", "approval": false},
	"call": {"id": "c_1", "args": {}, "effect_class": "reversible", "declared": true, "batch": {"index": 0, "count": 1}},
	"access": {"action": "write", "dynamic": false, "resource": {"kind": "file", "text": "file://workspace/a.txt", "root": "workspace", "path": "a.txt",
		"segments": ["a.txt"], "name": "a.txt", "ext": ".txt"}}}`

// fieldValues maps each rule of reference/policy.md to the change of an
// ordinary input that makes the rule hold.
var fieldValues = map[string]string{
	"principal.id":    `{"principal":{"id":"mallory"}}`,
	"principal.kind":  `{"principal":{"kind":"service"}}`,
	"principal.roles": `{"principal":{"roles":["guest"]}}`,
	"principal.chain": `{"principal":{"chain":["a","b","c","d"]}}`,

	"session.id":                      `{"session":{"id":"s_revoked"}}`,
	"session.labels":                  `{"session":{"labels":["untrusted"]},"access":{"action":"connect"}}`,
	"session.requires":                `{"session":{"requires":["preview"]}}`,
	"session.tools.run":               countsJSON(`"run":100`, `{}`),
	"session.tools.denied":            countsJSON(`"denied":5`, `{}`),
	"session.tools.failed":            countsJSON(`"failed":5`, `{}`),
	"session.tools.in_flight":         countsJSON(`"in_flight":4`, `{}`),
	"session.tools.sums":              countsJSON(`"sums":{"bytes":1000001}`, `{}`),
	"session.tools.windows.run":       countsJSON(`"run":11`, `{"1m":{"run":11}}`),
	"session.tools.windows.denied":    countsJSON(`"denied":3`, `{"1h":{"denied":3}}`),
	"session.tools.windows.failed":    countsJSON(`"run":1`, `{"24h":{"failed":50}}`),
	"session.tools.windows.in_flight": countsJSON(`"run":1`, `{"1m":{"in_flight":3}}`),
	"session.tools.windows.sums":      countsJSON(`"run":1`, `{"24h":{"sums":{"bytes":500001}}}`),
	"session.recent":                  `{"session":{"recent":[{"tool":"http_get","status":"denied"}]}}`,
	"session.client.surface":          client(`"surface":"public"`),
	"session.client.model":            client(`"model":"preview-1"`),
	"session.client.capabilities":     client(`"capabilities":[]`),
	"session.client.confidence":       client(`"confidence":100`),
	"session.client.selected":         client(`"selected":["file_read"]`),
	"session.client.off":              client(`"off":["file_write"]`),
	"session.history":                 `{"tool":{"name":"deploy"},"session":{"history":[{"tool":"run_tests","outcome":"done","resources":[]},{"tool":"file_write","outcome":"done","resources":[]}]}}`,
	"session.data":                    `{"session":{"data":{"freeze":"yes"}}}`,

	"txn.id":    `{"txn":{"id":"t_frozen"}}`,
	"txn.calls": `{"txn":{"calls":20}}`,
	"txn.depth": `{"txn":{"depth":3}}`,

	"txn.effects":         commits(`"effects":[{"kind":"call","class":"pivot","coverage":"declared","tool":"mail","call":"c_1","unknown":false,"resource":{"kind":"https","text":"https://mail.example/","host":"mail.example"}}]`),
	"txn.effects_cut":     commits(`"effects_cut":true`),
	"txn.totals":          commits(`"totals":{"effects":21,"reversible":11,"compensable":0,"deferrable":0,"pivot":0,"unknown":0,"held":0}`),
	"txn.totals.held":     commits(`"totals":{"effects":1,"reversible":0,"compensable":0,"deferrable":1,"pivot":0,"unknown":0,"held":1}`),
	"txn.totals.unknown":  commits(`"totals":{"effects":1,"reversible":0,"compensable":0,"deferrable":0,"pivot":1,"unknown":1,"held":0}`),
	"txn.effects.unknown": commits(`"effects":[{"kind":"call","class":"pivot","coverage":"declared","tool":"x","call":"c_1","unknown":true,"resource":{"kind":"tool","text":"tool://x","name":"x"}}]`),

	"tool.name":        `{"tool":{"name":"shell_run"}}`,
	"tool.version":     `{"tool":{"version":"0.3"}}`,
	"tool.tags":        `{"tool":{"tags":["experimental"]}}`,
	"tool.digest":      `{"tool":{"digest":"sha256:0000"}}`,
	"tool.provenance":  `{"tool":{"provenance":"mcp"}}`,
	"tool.can_verify":  `{"tool":{"can_verify":false}}`,
	"tool.can_revert":  `{"tool":{"can_revert":false}}`,
	"tool.confinement": `{"tool":{"confinement":"trusted"}}`,
	"tool.coverage":    `{"tool":{"coverage":"observed"}}`,
	"tool.destination": `{"tool":{"destination":"model_chosen"}}`,
	"tool.grade":       `{"tool":{"grade":"not_undoable"}}`,
	"tool.confidence":  `{"tool":{"confidence":901}}`,
	"tool.idempotent":  `{"tool":{"idempotent":false},"call":{"batch":{"count":6}}}`,
	"tool.risk":        `{"tool":{"risk":"high"}}`,
	"tool.approval":    `{"tool":{"approval":true}}`,

	"call.id":                      `{"call":{"id":"c_stopped"}}`,
	"call.args":                    `{"call":{"args":{"content":"-----BEGIN PRIVATE KEY-----"}}}`,
	"call.effect_class":            `{"call":{"effect_class":"pivot"}}`,
	"call.declared":                `{"call":{"declared":false}}`,
	"call.batch.index":             `{"call":{"batch":{"index":8,"count":9}}}`,
	"call.batch.count":             `{"call":{"batch":{"count":17}}}`,
	"call.values":                  `{"call":{"values":[{"pointer":"/to","role":"authority","origins":[],"short":false}]}}`,
	"call.values.identifiers":      `{"call":{"values":[{"pointer":"/body","role":"content","origins":[],"short":false,"identifiers":[{"kind":"url","text":"https://evil.example/","origins":["untrusted"]}]}]}}`,
	"call.values_cut":              `{"call":{"values_cut":true}}`,
	"call.urls":                    `{"call":{"urls":[{"url":"https://evil.example/a","user_provided":true}]}}`,
	"call.urls.user_provided":      `{"call":{"urls":[{"url":"https://a.example/","user_provided":false}]}}`,
	"call.prompt.client":           `{"call":{"prompt":{"client":"unknown-agent","id":"p-1","text":""}}}`,
	"call.prompt.id":               `{"call":{"prompt":{"client":"codex","id":"p-withdrawn","text":""}}}`,
	"call.prompt.text":             `{"call":{"prompt":{"client":"codex","id":"p-1","text":"Clean production"}}}`,
	"call.script.commands.program": script(`"commands":[{"program":"curl","args":[]}]`),
	"call.script.commands.args":    script(`"commands":[{"program":"rm","args":["-rf","a"]}]`),
	"call.script.redirects.path":   script(`"redirects":[{"op":">","path":"/home/ada/.bashrc"}]`),
	"call.script.redirects.op":     script(`"redirects":[{"op":">>","path":"a"}]`),
	"call.script.dynamic":          script(`"dynamic":true`),
	"call.script.error":            script(`"error":"1:1: a quote is not closed"`),

	"access.action":             `{"access":{"action":"delete"}}`,
	"access.resource.kind":      resource(`"kind":"exec","program":"make","argv":["make"]`),
	"access.resource.text":      `{"access":{"resource":{"text":"file://workspace/LICENSE"}}}`,
	"access.resource.root":      `{"access":{"resource":{"root":"archive"}}}`,
	"access.resource.path":      `{"access":{"resource":{"path":"customers/ann.csv"}}}`,
	"access.resource.segments":  `{"access":{"resource":{"segments":["node_modules","a"]}}}`,
	"access.resource.name":      `{"access":{"resource":{"name":"package-lock.json"}}}`,
	"access.resource.ext":       `{"access":{"resource":{"ext":".exe"}}}`,
	"access.resource.scheme":    resource(`"kind":"http","scheme":"http","host":"a.example","port":80`),
	"access.resource.host":      resource(`"kind":"https","scheme":"https","host":"db.internal","port":443`),
	"access.resource.port":      resource(`"kind":"https","scheme":"https","host":"a.example","port":25`),
	"access.resource.database":  resource(`"kind":"db","database":"payroll","statement":"select"`),
	"access.resource.table":     resource(`"kind":"db","database":"shop","table":"users"`),
	"access.resource.statement": resource(`"kind":"db","database":"shop","statement":"drop"`),
	"access.resource.program":   resource(`"kind":"exec","program":"sudo","argv":["sudo"]`),
	"access.resource.argv":      resource(`"kind":"exec","program":"git","argv":["git","push","--force"]`),
	"access.resource.server":    resource(`"kind":"mcp","server":"mail","tool":"list"`),
	"access.resource.tool":      resource(`"kind":"mcp","server":"post","tool":"send_mail"`),
	"access.method":             `{"access":{"action":"connect","method":"PUT"}}`,
	"access.dynamic":            `{"access":{"dynamic":true}}`,
	"access.user_provided":      `{"access":{"user_provided":false}}`,
	"access.git.kind":           `{"purpose":"apply","access":{"git":{"kind":"hook"}}}`,
	"access.git.keys":           `{"purpose":"apply","access":{"git":{"kind":"config","keys":["core.fsmonitor"]}}}`,
	"access.git.new":            `{"purpose":"apply","access":{"git":{"kind":"config","keys":[],"new":true}}}`,

	"purpose":      `{"purpose":"revert"}`,
	"time":         `{"time":"2030-01-01T00:00:00Z"}`,
	"purpose list": `{"purpose":"list","tool":{"name":"shell_run"},"call":{"args":null}}`,

	"output":             `{"purpose":"verify","output":{"exit_code":1},"changes":[]}`,
	"changes.kind":       change(`"kind":"delete","before":"t1"`),
	"changes.resource":   change(`"kind":"write","resource":{"kind":"file","text":"file://workspace/go.sum","root":"workspace","path":"go.sum","segments":["go.sum"],"name":"go.sum"}`),
	"changes.before":     change(`"kind":"create","before":"t1"`),
	"changes.after":      change(`"kind":"write","before":"t1","after":"t1"`),
	"changes.text":       change(`"kind":"write","text":"a\n<<<<<<< ours\n"`),
	"changes.media_type": change(`"kind":"write","media_type":"application/octet-stream"`),
	"changes.size":       change(`"kind":"write","size":100001`),
	"changes.cut":        change(`"kind":"write","cut":true`),
	"changes.binary":     change(`"kind":"write","binary":true`),
	"changes.masked":     change(`"kind":"write","masked":true`),
	"changes.git.kind":   changeOf("apply", `"kind":"write","git":{"kind":"attributes"}`),
	"changes.git.keys":   changeOf("apply", `"kind":"write","git":{"kind":"config","keys":["alias.*"]}`),
	"changes.git.new":    changeOf("apply", `"kind":"write","git":{"kind":"config","keys":[],"new":true}`),
}

func countsJSON(counts, windows string) string {
	return `{"session":{"tools":{"file_write":{"run":0,` + counts + `,"windows":` + windows + `}}}}`
}

func client(member string) string {
	return `{"session":{"client":{"surface":"chat","model":"m","capabilities":["tools"],"confidence":1000,"off":[],` + member + `}}}`
}

func script(member string) string {
	return `{"call":{"script":{"commands":[],"redirects":[],"dynamic":false,` + member + `}}}`
}

func resource(members string) string {
	return `{"access":{"resource":{"kind":null,"text":"x","root":null,"path":null,"segments":null,"name":null,"ext":null,` + members + `}}}`
}

func change(members string) string { return changeOf("verify", members) }

func changeOf(purpose, members string) string {
	return `{"purpose":"` + purpose + `","output":{},"changes":[{"resource":{"kind":"file","text":"file://workspace/a.txt","root":"workspace","path":"a.txt","segments":["a.txt"],"name":"a.txt"},` + members + `}]}`
}

// with applies the members of a patch to a document; null removes one. Of two
// members with one name the last counts.
func with(doc, patch any) any {
	into, ok := doc.(map[string]any)
	from, both := patch.(map[string]any)
	if !ok || !both {
		return patch
	}
	out := maps.Clone(into)
	for name, value := range from {
		if value == nil && name != "args" {
			delete(out, name)
			continue
		}
		out[name] = with(out[name], value)
	}
	return out
}

// commits returns a patch for a request about a commit, which has no call.
func commits(facts string) string {
	return `{"purpose":"commit","txn":{` + facts + `}}`
}

// document returns an ordinary input with a patch.
func document(t *testing.T, patch string) string {
	t.Helper()
	var doc, change any
	require.NoError(t, json.Unmarshal([]byte(ordinary), &doc))
	require.NoError(t, json.Unmarshal([]byte(patch), &change), patch)
	text, err := json.Marshal(with(doc, change))
	require.NoError(t, err)
	return string(text)
}

var ruleName = regexp.MustCompile(`(?m)^(deny|ensure|hide|ask_commit|deny_commit) contains "([^"]+)" if`) // the set and the name

// TestPolicyFields checks that each field of the schema has a rule in the
// guide, and that each rule holds for its value and not for another one: with
// the command, and in Go.
func TestPolicyFields(t *testing.T) {
	p := newPlace(t)
	modules, rules := map[string]string{"otherwise.rego": "package remit\n\nallow contains \"otherwise\"\n"}, map[string]string{}
	for n := range 11 {
		file, text := fmt.Sprintf("fields%d.rego", n), take(t, "reference/policy.md", "rego", n)
		if strings.HasPrefix(text, "package remit_test") {
			file = "fields_test.rego"
		}
		modules[file] = text
		for _, m := range ruleName.FindAllStringSubmatch(text, -1) {
			rules[m[2]] = file
		}
	}
	for name, text := range modules {
		p.write("policy/"+name, text)
	}
	require.ElementsMatch(t, slices.Collect(maps.Keys(fieldValues)), slices.Collect(maps.Keys(rules)))
	for _, field := range schemaFields(t) {
		require.True(t, slices.ContainsFunc(slices.Collect(maps.Keys(rules)), func(rule string) bool { return reads(rule, field) }), "no rule reads input.%s", field)
	}

	engine, err := rego.New(rego.Options{Modules: modules})
	require.NoError(t, err)
	tested, err := engine.Test(t.Context())
	require.NoError(t, err)
	require.Len(t, tested.Results, 1)
	require.Empty(t, tested.Failed())
	for _, name := range slices.Sorted(maps.Keys(rules)) {
		doc := document(t, fieldValues[name])
		var request perm.Request
		require.NoError(t, json.Unmarshal([]byte(doc), &request), name)
		decided, err := engine.Decide(t.Context(), request)
		require.NoError(t, err, name)
		require.Contains(t, reasonTexts(decided), name)

		p.write("input.json", doc)
		var answer any
		require.NoError(t, json.Unmarshal([]byte(p.sh(0, "remit policy eval policy/otherwise.rego policy/"+rules[name]+" --json --input input.json || true")), &answer), name)
		require.Contains(t, texts(answer), name)
	}
	var request perm.Request
	require.NoError(t, json.Unmarshal([]byte(ordinary), &request))
	decided, err := engine.Decide(t.Context(), request)
	require.NoError(t, err)
	require.Equal(t, []string{"otherwise"}, reasonTexts(decided))
}

// reasonTexts returns the texts of the reasons of a decision.
func reasonTexts(d perm.Decision) (all []string) {
	for _, r := range slices.Concat(d.Reasons(), d.Details().FailedPostconditions, d.Details().HideReasons) {
		all = append(all, r.Text)
	}
	return all
}

// texts returns all texts in a document.
func texts(of any) (all []string) {
	switch v := of.(type) {
	case string:
		return []string{v}
	case []any:
		for _, one := range v {
			all = append(all, texts(one)...)
		}
	case map[string]any:
		for _, one := range v {
			all = append(all, texts(one)...)
		}
	}
	return all
}

// reads reports whether a rule concerns a field. One window of time represents
// the others, and the resource of a change represents that of an access.
func reads(rule, field string) bool {
	if strings.HasPrefix(field, "changes.resource.") {
		return rule == "changes.resource"
	}
	// One rule reads all members of a value, of an identifier, of an effect, of the totals, of an earlier call.
	for _, whole := range []string{"call.values.identifiers", "call.values", "txn.effects", "txn.totals", "session.history"} {
		if strings.HasPrefix(field, whole+".") {
			return rule == whole
		}
	}
	return rule == field
}

// schemaFields returns the fields of the published schema, without the
// wildcards for elements and names.
func schemaFields(t *testing.T) (fields []string) {
	t.Helper()
	type node struct {
		Ref         string           `json:"$ref"`
		Properties  map[string]*node `json:"properties"`
		Additional  json.RawMessage  `json:"additionalProperties"`
		Items       *node            `json:"items"`
		Definitions map[string]*node `json:"definitions"`
	}
	var top node
	require.NoError(t, json.Unmarshal(perm.InputSchema(), &top))
	var walk func(n *node, at string)
	walk = func(n *node, at string) {
		if n.Ref != "" {
			n = top.Definitions[strings.TrimPrefix(n.Ref, "#/definitions/")]
		}
		var any node
		switch {
		case len(n.Properties) > 0:
			for name, p := range n.Properties {
				walk(p, strings.TrimPrefix(at+"."+name, "."))
			}
		case n.Items != nil:
			walk(n.Items, at)
		case json.Unmarshal(n.Additional, &any) == nil && len(n.Additional) > 5:
			walk(&any, at)
		default:
			fields = append(fields, at)
		}
	}
	walk(&top, "")
	require.Greater(t, len(fields), 90)
	for i, f := range fields {
		fields[i] = strings.NewReplacer(".1m.", ".", ".1h.", ".", ".24h.", ".", "urls.url", "urls", "recent.tool", "recent", "recent.status", "recent").Replace(f)
	}
	return fields
}
