package tool_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/provenance"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
)

// copier reads one file and writes another, through handles.
func copier(t *testing.T, change ...func(*tool.Spec)) tool.Tool {
	s := tool.Spec{
		Name: "copier", Description: "Copies.", Version: "1", Tags: []string{"files"}, EffectClass: effect.Reversible, Confinement: tool.Handles, Destination: tool.NoDestination,
		Input: json.RawMessage(`{"type":"object","properties":{"from":{"type":"string"},"to":{"type":"string"},"mode":{"enum":["fast","safe"]},"lines":{"type":"integer","minimum":0}},"required":["from","to"],"additionalProperties":false}`),
		Needs: []perm.ResourceAccess{
			{Action: perm.Read, Resource: "file://workspace/{from}"}, {Action: perm.Write, Resource: "file://workspace/{to}"}, {Action: perm.List, Resource: "file://workspace/**"},
		},
		Counters:   map[string]string{"lines": "lines"},
		Hints:      tool.Hints{Idempotent: true, Concurrent: true, Timeout: time.Minute, Sensitive: []string{"from"}},
		Provenance: provenance.Source{Kind: provenance.Host, Name: "example.com/copier"},
		ClassOf:    func(json.RawMessage) effect.Class { return effect.Pure },
		Execute: func(context.Context, ctxperm.ToolContext, json.RawMessage) (tool.Result, error) {
			return tool.Text("copied"), nil
		},
	}
	for _, c := range change {
		c(&s)
	}
	made, err := tool.FromSpec(s)
	require.NoError(t, err)
	return made
}

func TestAdjust(t *testing.T) {
	was := copier(t)
	patch := `[
	  {"op":"test","path":"/digest","value":"` + was.Digest() + `"},
	  {"op":"replace","path":"/description","value":"Copies a page of the docs."},
	  {"op":"add","path":"/tags/-","value":"docs"},
	  {"op":"remove","path":"/input/properties/mode"},
	  {"op":"add","path":"/input/properties/lines/maximum","value":10},
	  {"op":"add","path":"/input/properties/to/description","value":"Where to."},
	  {"op":"replace","path":"/needs/1/resource","value":"file://workspace/docs/**"},
	  {"op":"remove","path":"/needs/2"},
	  {"op":"replace","path":"/effect_class","value":"pivot"},
	  {"op":"replace","path":"/destination","value":"configured"},
	  {"op":"replace","path":"/hints","value":{"idempotent":false,"concurrent":false,"timeout":"30s","sensitive":["to","from"]}}
	]`
	is, err := was.Patch([]byte(patch))
	require.NoError(t, err)
	s := is.Spec()
	require.Equal(t, "Copies a page of the docs.", s.Description)
	require.Equal(t, []string{"files", "docs"}, s.Tags)
	require.Equal(t, tool.Hints{Timeout: 30 * time.Second, Sensitive: []string{"to", "from"}}, s.Hints)
	require.Equal(t, tool.Configured, s.Destination)
	require.JSONEq(t, `{"type":"object","properties":{"from":{"type":"string"},"to":{"type":"string","description":"Where to."},"lines":{"type":"integer","minimum":0,"maximum":10}},"required":["from","to"],"additionalProperties":false}`, string(is.InputSchema()))

	// Where it comes from, and that it is another declaration.
	require.NotEqual(t, was.Digest(), is.Digest())
	steps, err := canon.Canonicalize([]byte(patch), canon.DefaultLimits())
	require.NoError(t, err)
	require.Equal(t, provenance.Source{
		Kind: provenance.Host, Name: "example.com/copier", Parent: was.Digest(), Patch: string(canon.Sum("remit/patch/v1", steps)),
	}, s.Provenance)
	require.Equal(t, "1", was.Spec().Version, "the old one is as it was")
	require.Equal(t, "Copies.", was.Spec().Description)

	// No call is milder than the class.
	class, err := is.ClassFor(json.RawMessage(`{"from":"a","to":"docs/b"}`))
	require.NoError(t, err)
	require.Equal(t, effect.Pivot, class)

	// What a call touches is what it always touched, within what is left.
	accesses, err := is.Accesses(json.RawMessage(`{"from":"a","to":"docs/b"}`))
	require.NoError(t, err)
	require.ElementsMatch(t, []perm.ResourceAccess{{Action: perm.Read, Resource: "file://workspace/a"}, {Action: perm.Write, Resource: "file://workspace/docs/b"}}, accesses)
	_, err = is.Accesses(json.RawMessage(`{"from":"a","to":"b"}`))
	require.ErrorContains(t, err, "outside what the tool declares to need")
	_, err = is.Accesses(json.RawMessage(`{"from":"a","to":"docs/b","lines":11}`))
	require.ErrorContains(t, err, "lines")
	bound, err := perm.NewSet(is.RequiredAccesses()...)
	require.NoError(t, err)
	require.False(t, bound.Covers(perm.ResourceAccess{Action: perm.Write, Resource: "file://workspace/b"}))
	require.False(t, bound.Covers(perm.ResourceAccess{Action: perm.List, Resource: "file://workspace/docs"}))

	// Once more, from there.
	again, err := is.Patch([]byte(`[{"op":"remove","path":"/needs/0"}]`))
	require.NoError(t, err)
	require.Equal(t, is.Digest(), again.Spec().Provenance.Parent)
	_, err = again.Accesses(json.RawMessage(`{"from":"a","to":"docs/b"}`))
	require.ErrorContains(t, err, "outside what the tool declares to need")
	_, err = is.Patch([]byte(patch))
	require.ErrorContains(t, err, `adjusting tool "copier": operation 1, "test" "/digest": the test failed`)
}

// TestAnAdjustedToolIsUngraded: the grade is of another declaration.
func TestAnAdjustedToolIsUngraded(t *testing.T) {
	was := copier(t)
	file := gradeFile(t, provenance.GradeRecord{Tool: "copier", Digest: was.Digest(), Grade: provenance.CrashUndoable, Kit: 1})
	graded, err := was.Graded(file)
	require.NoError(t, err)
	require.Equal(t, provenance.CrashUndoable, graded.Grade())
	is, err := graded.Patch([]byte(`[{"op":"replace","path":"/description","value":"Copies it."}]`))
	require.NoError(t, err)
	require.Equal(t, provenance.Ungraded, is.Grade())
	is, err = is.Graded(file)
	require.NoError(t, err)
	require.Equal(t, provenance.Ungraded, is.Grade())
}

// TestAdjustIsNeverWider: each is refused, with the place.
func TestAdjustIsNeverWider(t *testing.T) {
	for name, tt := range map[string]struct{ patch, says string }{
		"nothing":                     {`[]`, "changes nothing"},
		"nothing, in the end":         {`[{"op":"replace","path":"/version","value":"2"},{"op":"replace","path":"/version","value":"1"}]`, "changes nothing"},
		"no patch":                    {`{}`, "not a list"},
		"a misspelt member":           {`[{"op":"replace","path":"/description","vaule":"x"}]`, `operation 1, "replace" "/description": replace has no member "vaule"`},
		"a member that there is not":  {`[{"op":"add","path":"/execute","value":"x"}]`, "/execute: a declaration has no such member"},
		"one further in":              {`[{"op":"add","path":"/hints/retry","value":true}]`, "retry"},
		"one that goes":               {`[{"op":"remove","path":"/destination"}]`, "/destination: it is gone"},
		"another kind of value":       {`[{"op":"replace","path":"/tags","value":"x"}]`, "tags"},
		"its name":                    {`[{"op":"replace","path":"/name","value":"other"}]`, "/name: it belongs to the code"},
		"its digest":                  {`[{"op":"replace","path":"/digest","value":"sha256:0"}]`, "/digest: it belongs"},
		"its output":                  {`[{"op":"replace","path":"/output","value":{}}]`, "/output: it belongs"},
		"its counters":                {`[{"op":"remove","path":"/counters/lines"}]`, "/counters: it belongs"},
		"no description":              {`[{"op":"replace","path":"/description","value":""}]`, "/description: it is empty"},
		"a longer list":               {`[{"op":"add","path":"/input/properties/mode/enum/-","value":"wild"}]`, "/input/properties/mode/enum: it has a value that it did not have"},
		"a new argument":              {`[{"op":"add","path":"/input/properties/more","value":{}}]`, "/input/properties/more: it is a member that there was not"},
		"less required":               {`[{"op":"remove","path":"/input/required/0"}]`, "/input/required: a member that was required no longer is"},
		"an open schema":              {`[{"op":"replace","path":"/input/additionalProperties","value":true}]`, "/input/additionalProperties"},
		"no schema":                   {`[{"op":"replace","path":"/input","value":{"type":"nope"}}]`, "/input"},
		"an argument of a need":       {`[{"op":"replace","path":"/input/properties/to","value":false}]`, "parameter {to}"},
		"one need more":               {`[{"op":"add","path":"/needs/-","value":{"action":"delete","resource":"file://workspace/a"}}]`, "/needs/3: delete file://workspace/a is more than the tool needs"},
		"another root":                {`[{"op":"replace","path":"/needs/1/resource","value":"file://other/**"}]`, "/needs/1: write file://other/** is more"},
		"another action":              {`[{"op":"replace","path":"/needs/0/action","value":"write"}]`, "/needs/0: a need with a parameter cannot be new"},
		"no action":                   {`[{"op":"replace","path":"/needs/2/action","value":"peek"}]`, "/needs/2/action"},
		"no resource":                 {`[{"op":"replace","path":"/needs/2/resource","value":"nowhere"}]`, "/needs/2"},
		"a milder class":              {`[{"op":"replace","path":"/effect_class","value":"pure"}]`, "/effect_class: pure promises more than reversible"},
		"another class":               {`[{"op":"replace","path":"/effect_class","value":"deferrable"}]`, "/effect_class: deferrable promises more"},
		"a class that there is not":   {`[{"op":"replace","path":"/effect_class","value":"odd"}]`, "/effect_class: odd"},
		"more confined":               {`[{"op":"replace","path":"/confinement","value":"sandbox"}]`, "/confinement: it is handles"},
		"a claim without handles":     {`[{"op":"replace","path":"/confinement","value":"trusted"}]`, "a reversible tool either acts only through handles"},
		"unconfined with fewer needs": {`[{"op":"replace","path":"/confinement","value":"trusted"},{"op":"replace","path":"/effect_class","value":"pivot"},{"op":"remove","path":"/needs/2"}]`, "/confinement: needs are narrower only"},
		"a longer timeout":            {`[{"op":"replace","path":"/hints/timeout","value":"61s"}]`, "/hints/timeout: it is longer than 1m0s"},
		"no timeout":                  {`[{"op":"replace","path":"/hints/timeout","value":"0s"}]`, "/hints/timeout: it is longer"},
		"no duration":                 {`[{"op":"replace","path":"/hints/timeout","value":"soon"}]`, "/hints/timeout: it is a duration"},
		"shown":                       {`[{"op":"replace","path":"/hints/sensitive","value":["to"]}]`, `/hints/sensitive: "from" would be shown`},
	} {
		t.Run(name, func(t *testing.T) {
			made, err := copier(t).Patch([]byte(tt.patch))
			require.ErrorContains(t, err, tt.says)
			require.ErrorContains(t, err, `adjusting tool "copier": `)
			require.True(t, made.IsZero())
		})
	}
	shy := copier(t, func(s *tool.Spec) {
		s.EffectClass, s.ClassOf, s.Confinement, s.Destination, s.Hints = effect.Pivot, nil, tool.Trusted, tool.ThirdParty, tool.Hints{}
	})
	for place, value := range map[string]string{
		"/hints/idempotent": "true", "/hints/concurrent": "true", "/destination": `"none"`, "/effect_class": `"reversible"`, "/confinement": `"handles"`, "/needs": "[]",
	} {
		_, err := shy.Patch([]byte(`[{"op":"replace","path":"` + place + `","value":` + value + `}]`))
		require.ErrorContains(t, err, place+": ")
	}
	_, err := tool.Tool{}.Patch([]byte(`[]`))
	require.ErrorContains(t, err, "zero Tool")
}

// TestAdjustUnconfines: what a tool claims for itself may be taken from it.
func TestAdjustUnconfines(t *testing.T) {
	is, err := copier(t).Patch([]byte(`[{"op":"replace","path":"/confinement","value":"trusted"},{"op":"replace","path":"/effect_class","value":"pivot"}]`))
	require.NoError(t, err)
	require.Equal(t, tool.Trusted, is.Spec().Confinement)
	narrow, err := copier(t).Patch([]byte(`[{"op":"remove","path":"/needs/2"}]`))
	require.NoError(t, err)
	_, err = narrow.Patch([]byte(`[{"op":"replace","path":"/confinement","value":"trusted"},{"op":"replace","path":"/effect_class","value":"pivot"}]`))
	require.ErrorContains(t, err, "/confinement: needs are narrower only", "also where they were adjusted before")
}

// TestAdjustFreeForm: the one text of a tool without arguments can be bounded, too.
func TestAdjustFreeForm(t *testing.T) {
	was, err := tool.Create("say", "Says it.", func(_ context.Context, in string) (string, error) { return in, nil }, tool.Pure())
	require.NoError(t, err)
	is, err := was.Patch([]byte(`[{"op":"add","path":"/input/maxLength","value":3}]`))
	require.NoError(t, err)
	_, err = is.Accesses(json.RawMessage(`"abcd"`))
	require.ErrorIs(t, err, tool.ErrInvalid)
	_, err = is.Accesses(json.RawMessage(`"abc"`))
	require.NoError(t, err)
}
