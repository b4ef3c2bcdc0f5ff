package pipeline

import (
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/handleaccess"
	"github.com/remit-dev/remit/internal/toolaccess"
	"github.com/remit-dev/remit/tool"
)

// internals are what package tool hides from tool authors.
var internals = toolaccess.Of[tool.Tool, tool.Spec, tool.Registry, tool.RevertContext]()

var contexts = handleaccess.ContextsOf[ctxperm.ToolContext, ctxperm.Permit]()

// spec returns the literal of a tool, for readers only.
func spec(t tool.Tool) *tool.Spec { return internals.Spec(t) }
