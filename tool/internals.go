package tool

import (
	"slices"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/toolaccess"
)

// init lets this module reach what tool authors do not see: see package
// internal/toolaccess.
func init() {
	toolaccess.Install(toolaccess.Internals[Tool, Spec, Registry, RevertContext]{
		Spec:      Tool.look,
		Compiled:  Tool.compiled,
		Admit:     Tool.admit,
		ForRevert: Registry.forRevert,
		Replacing: Registry.replacing,

		CheckSetting:    Tool.checkSetting,
		WithoutSettings: Tool.withoutSettings,

		InSandbox: Spec.inSandbox,
		WithParts: Spec.withParts,

		WithToolContext: RevertContext.with,
	})
}

func (t Tool) compiled() toolaccess.Compiled {
	return toolaccess.Compiled{
		Output: t.t.output, Bound: t.t.bound, Settings: t.t.configured.values, Sandboxed: t.t.spec.sandboxed,
	}
}

func (s Spec) inSandbox() Spec {
	s.sandboxed, s.Confinement = true, Sandbox
	return s
}

func (s Spec) withParts(parts []Tool) Spec {
	s.parts = slices.Clone(parts)
	return s
}

func (rc RevertContext) with(tc ctxperm.ToolContext) RevertContext {
	rc.tc = tc
	return rc
}
