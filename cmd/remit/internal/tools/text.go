package tools

import (
	"fmt"

	"github.com/remit-dev/remit/provenance"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
)

// confinementWords describes what confines a tool to its accesses.
func confinementWords(c tool.Confinement) string {
	switch c {
	case tool.Sandbox:
		return "sandbox: by the operating system, as far as remit doctor says"
	case tool.Handles:
		return "handles: its author's claim that it acts only through them"
	case tool.Trusted:
	}
	return "trusted: by nothing, it is code of this process"
}

// checks lists what verifies a call of the tool, in addition to postconditions.
func checks(s tool.Spec) []string {
	out := []string{}
	if s.Output != nil {
		out = append(out, "output_schema")
	}
	if s.Verify != nil {
		out = append(out, "verify")
	}
	return out
}

func checkWords(by []string) string {
	words := ""
	for _, c := range by {
		if words != "" {
			words += " and "
		}
		words += map[string]string{"output_schema": "the schema of its output", "verify": "its own Verify"}[c]
	}
	if words == "" {
		return "nothing: that it ran is all that is known"
	}
	return "by " + words
}

// revertMeans lists what reverts calls of the tool. It is empty if nothing can
// promise that for every call, or if there is nothing to revert.
func revertMeans(s tool.Spec) []string {
	out := []string{}
	if s.Revert != nil {
		out = append(out, "revert")
	}
	switch s.EffectClass.OrPivot() {
	case effect.Reversible, effect.Compensable:
		if s.Confinement != tool.Trusted {
			out = append(out, string(s.Confinement))
		}
	case effect.Pure, effect.Deferrable, effect.Pivot:
	}
	return out
}

func revertWords(s tool.Spec) string {
	class := s.EffectClass.OrPivot()
	words := ""
	for _, way := range revertMeans(s) {
		if words != "" {
			words += " and "
		}
		words += map[string]string{
			"revert": "its own Revert", "handles": "the handles that it acts through", "sandbox": "what its program changed, path by path",
		}[way]
	}
	switch {
	case words != "" && class == effect.Compensable:
		return "by " + words + "; traces remain"
	case words != "":
		return "by " + words
	case class == effect.Pure:
		return "there is nothing to revert"
	default:
		return "not at all once it ran; a policy can hold it until the commit"
	}
}

// gradeWords describes the grade of a tool and the build that graded it.
func gradeWords(g provenance.Grade, r *provenance.GradeRecord) string {
	words := string(g) + ": " + map[provenance.Grade]string{
		provenance.Ungraded:      "the fault kit has not graded this declaration",
		provenance.NotUndoable:   "do not rely on its undo",
		provenance.Compensable:   "reverted if no fault occurs; after a fault the report says what is left",
		provenance.CrashUndoable: "reverted exactly, whatever a fault left",
		provenance.ReadOnly:      "it changes nothing",
	}[g]
	if r == nil {
		return words
	}
	if r.Against != "" {
		words += " (" + r.Against + ")"
	}
	by := r.Build.Version
	if r.Build.Revision != "" {
		by += " " + r.Build.Revision[:min(len(r.Build.Revision), 12)]
	}
	return fmt.Sprintf("%s; %d runs by %s %s, %s", words, r.Runs, r.Build.Module, by, r.Build.Platform)
}
