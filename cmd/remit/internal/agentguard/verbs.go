package agentguard

import (
	"strings"

	"github.com/spf13/cobra"
)

// permission says what a command may do below an agent.
type permission string

const (
	refused permission = ""        // also for commands that the table does not have
	shows   permission = "shows"   // changes nothing of the person
	reverts permission = "reverts" // changes only what the agent did itself; it checks that
)

// permissions has the commands, without the name of the program.
var permissions = map[string]permission{
	"": shows, "help": shows, "version": shows, "completion": shows, "__complete": shows, "__completeNoDesc": shows,
	"log": shows, "show": shows, "diff": shows, "pending": shows, "fsck": shows, "nodes": shows, "doctor": shows, "grants": shows,
	"tools": shows, "tools check": shows, "tools define": shows, "tools stats": shows, "secret list": shows,
	"policy": shows, "policy check": shows, "policy eval": shows, "policy explain": shows, "policy schema": shows, "policy test": shows,
	"approval": shows, "connect": shows, "secret": shows,
	// The client itself starts these: its hooks, the resident process, its MCP servers.
	"hook": shows, "daemon": shows, "serve": shows, "gateway": shows,
	"revert": reverts, "redo": reverts,
}

// changes has what makes a command change something that otherwise only shows.
var changes = map[string]func(cmd *cobra.Command) bool{
	"connect": func(cmd *cobra.Command) bool {
		return (cmd.Flags().NArg() > 0 || cmd.Flags().Changed("file")) && cmd.Flag("preview").Value.String() != "true"
	},
	"fsck":    given("accept-head"),
	"pending": given("discard"),
	"serve":   given("http"),
	"gateway": given("http"),
}

func given(flag string) func(*cobra.Command) bool {
	return func(cmd *cobra.Command) bool { return cmd.Flags().Changed(flag) }
}

// permissionOf returns what a command may do below an agent, and its name.
func permissionOf(cmd *cobra.Command) (permission, string) {
	_, name, _ := strings.Cut(cmd.CommandPath(), " ")
	if strings.HasPrefix(name, "completion ") {
		return shows, name
	}
	if does := changes[name]; does != nil && does(cmd) {
		return refused, name
	}
	return permissions[name], name
}
