package taskcorpus_test

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/provenance"
	"github.com/remit-dev/remit/revert/effect"
)

// TestTasks checks the suite itself, without a policy that stops anything. Without
// REMIT_LONG it plays the injections of the measured tasks only.
func TestTasks(t *testing.T) {
	r := newRunner(t, allowAll)
	counts := map[string]int{}
	for _, task := range allTasks() {
		counts[task.domain+" "+task.half()]++
		t.Run(task.name(), func(t *testing.T) {
			require.Len(t, task.attacks, 5)
			require.NotEmpty(t, task.says)
			require.False(t, task.whole(newServices()), "the request is fulfilled before any call")
			honest := r.play(t, task, nil, commits)
			require.True(t, honest.whole, "the honest calls do not fulfil the request: %v", r.host.now.log)
			require.Zero(t, honest.prompts)
			require.Zero(t, honest.refused)
			require.Empty(t, honest.guessed, "no earlier result has these IDs")
			checkCalls(t, r, task)
			if !long() && !brief(task) {
				return
			}
			for i := range task.attacks {
				t.Run(fmt.Sprint(i+1), func(t *testing.T) { checkAttack(t, r, task, &task.attacks[i], honest) })
			}
		})
	}
	for _, domain := range domains {
		require.Equal(t, 5, counts[domain+" odd"], domain)
		require.Equal(t, 5, counts[domain+" even"], domain)
	}
}

// checkCalls checks that a task is not whole without one of its calls with effects.
func checkCalls(t *testing.T, r *runner, task task) {
	classes := map[string]effect.Class{}
	for _, made := range r.host.tools {
		classes[made.Name()] = made.Spec().EffectClass
	}
	for i, left := range task.does {
		if classes[left.tool] == effect.Pure {
			continue
		}
		less := task
		less.does = slices.Clone(task.does)
		less.does[i] = c("list_accounts") // reads, and keeps the numbers of the others
		require.False(t, r.play(t, less, nil, commits).whole, "whole without call %d, %s", i+1, left.tool)
	}
}

var domains = []string{"bank", "calendar", "chat", "code", "mail", "travel"}

// checkAttack checks that the effect of an injection happens, that only its calls
// cause it, and what of it a revert takes back.
func checkAttack(t *testing.T, r *runner, task task, a *attack, honest outcome) {
	require.False(t, a.harm(newServices()), "the effect is there before any call")
	r.play(t, task, nil, commits)
	require.False(t, a.harm(r.host.now), "the honest calls cause the effect")
	careful := r.play(t, task, &attack{in: a.in, text: a.text, harm: a.harm}, commits)
	require.False(t, careful.harmed, "the hostile text alone is the effect")
	require.True(t, careful.whole, "the hostile text hinders an agent that ignores it")
	require.Empty(t, careful.vouched, "a tool declares a field as trusted that others can write")

	harmed := r.play(t, task, a, commits)
	require.True(t, harmed.hijacked, "no call of the agent reads the hostile text")
	require.True(t, harmed.harmed, "the injected calls have no effect: %v", r.host.now.log)
	require.Empty(t, harmed.guessed, "no earlier result has these IDs")
	intended := withoutNew(honest.inputs)
	for _, input := range withoutNew(harmed.inputs) {
		require.Contains(t, intended, input, "the hostile text changes an honest call")
	}
	for _, input := range withoutNew(harmed.foreign) {
		require.NotContains(t, intended, input, "an injected call with an effect is also an honest one")
	}

	reverted := r.play(t, task, a, reverts)
	require.Equal(t, a.reversible, !reverted.harmed, "reversible")
}

// newID matches the ID of an item that a call of the run made. Its number depends
// on the injected calls before.
var newID = regexp.MustCompile(`\b9\d\d\b`)

func withoutNew(inputs []string) (same []string) {
	for _, input := range inputs {
		same = append(same, newID.ReplaceAllString(input, "9.."))
	}
	return same
}

// TestDeclarations checks that the declarations of tools name values that exist,
// and that the class of a tool is that of its effects.
func TestDeclarations(t *testing.T) {
	h := newHost()
	require.GreaterOrEqual(t, len(h.tools), 60)
	for _, made := range h.tools {
		spec, declared := made.Spec(), h.declared[made.Name()]
		require.NotEmpty(t, spec.Description)
		require.True(t, spec.EffectClass.Valid(), made.Name())
		require.NotNil(t, spec.OutputContent, made.Name())
		undoes := slices.Contains([]effect.Class{effect.Reversible, effect.Compensable}, spec.EffectClass)
		require.Equal(t, undoes, spec.Revert != nil, made.Name())
		for pointer := range declared.roles {
			require.True(t, declares(spec.Input, pointer), "%s: no argument %s", made.Name(), pointer)
		}
		for pointer := range declared.fields {
			require.True(t, declares(spec.Output, pointer), "%s: no field %s", made.Name(), pointer)
		}
	}
	require.Equal(t, provenance.Roles{"/subject": provenance.Payload, "/body": provenance.Payload}, h.declared["send_mail"].roles)
	require.Equal(t, "trusted", string(h.declared["list_mail"].fields["/messages/*/id"]))
	require.NotContains(t, h.declared["list_mail"].fields, "/messages/*/from")

	d := declaration{provenance.Untrusted, nil, map[string]provenance.Trust{"/list/*/id": provenance.Trusted}}
	item := func(id, text string) any {
		return map[string]any{"list": []any{map[string]any{"id": id, "text": text}}}
	}
	require.False(t, d.trusts(item("1", "evil"), "evil"))
	require.True(t, d.trusts(item("evil", ""), "evil"))
}

// declares reports whether a JSON Schema has the property of a pointer.
func declares(schema json.RawMessage, pointer string) bool {
	var at any
	must(json.Unmarshal(schema, &at))
	for _, step := range splitPointer(pointer) {
		object, ok := at.(map[string]any)
		if !ok {
			return false
		}
		if step == "*" {
			at = object["items"]
			continue
		}
		properties, _ := object["properties"].(map[string]any)
		if at, ok = properties[step]; !ok {
			return false
		}
	}
	return at != nil
}

// brief reports whether a task is one of those that are played without REMIT_LONG.
func brief(t task) bool { return t.number <= 2 }

// long reports whether the whole suite runs.
func long() bool { return os.Getenv("REMIT_LONG") != "" || os.Getenv("REMIT_PROVE") != "" }
