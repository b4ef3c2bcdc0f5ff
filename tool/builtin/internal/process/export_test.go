package process

import "github.com/remit-dev/remit/tool"

// ToolsOf are the tools of a machine that has a shell.
func ToolsOf(shell string) []tool.Tool { return toolsOf(shell, false) }

// Shell is the one of this machine.
func Shell() string { return shell() }
