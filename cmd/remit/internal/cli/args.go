package cli

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/remit-dev/remit/internal/suggest"
)

// FlagProblem suggests a flag for an unknown one.
func FlagProblem(cmd *cobra.Command, err error) error {
	if args := cmd.Flags().Args(); cmd.HasSubCommands() && len(args) > 0 { // the flag is one of a command that does not exist
		return NoArgs(cmd, args)
	}
	p := UsageProblem(err.Error())
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return p
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	if near := suggest.Name(unknown.GetSpecifiedName(), names); near != "" {
		p.Fix = "did you mean --" + near + "?"
	}
	return p
}

// NoArgs rejects arguments. For the root command they are names of commands.
func NoArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if cmd.HasSubCommands() {
		e := UsageProblem(fmt.Sprintf("there is no command %q", cmd.CommandPath()+" "+args[0]))
		if path := below(cmd, args[0]); path != "" {
			e.Fix = fmt.Sprintf("did you mean %q?", path)
			return e
		}
		cmd.SuggestionsMinimumDistance = 2
		if near := suggest.Name(args[0], verbNames(cmd)); near != "" {
			e.Fix = fmt.Sprintf("did you mean %q?", cmd.CommandPath()+" "+near)
		} else if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
			e.Fix = fmt.Sprintf("did you mean %q?", cmd.CommandPath()+" "+near[0])
		}
		return e
	}
	return UsageProblem(fmt.Sprintf("%q takes no arguments, and there is %q", cmd.CommandPath(), args[0]))
}

// verbNames returns the names of the commands below a command, also those that
// cobra never suggests: aliases, and help.
func verbNames(cmd *cobra.Command) (names []string) {
	for _, c := range cmd.Commands() {
		if !c.Hidden {
			names = append(append(names, c.Name()), c.Aliases...)
		}
	}
	if !cmd.HasParent() {
		names = append(names, "help")
	}
	return names
}

// below returns the path of a command with a name below the commands of a
// command, if there is exactly one.
func below(cmd *cobra.Command, name string) (path string) {
	for _, group := range cmd.Commands() {
		for _, c := range group.Commands() {
			if c.Name() != name || c.Hidden {
				continue
			}
			if path != "" {
				return ""
			}
			path = c.CommandPath()
		}
	}
	return path
}

// WantArgs rejects any number of arguments outside low to high. What names
// them.
func WantArgs(low, high int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < low || (high >= 0 && len(args) > high) {
			return UsageProblem(fmt.Sprintf("%q takes %s; there are %d arguments", cmd.CommandPath(), what, len(args)))
		}
		return nil
	}
}

// WantIDs is WantArgs for IDs. It rejects an empty ID, as an unset variable
// leaves it.
func WantIDs(low, high int, what string) cobra.PositionalArgs {
	number := WantArgs(low, high, what)
	return func(cmd *cobra.Command, args []string) error {
		if slices.Contains(args, "") {
			return EmptyID()
		}
		return number(cmd, args)
	}
}

// EmptyID returns the problem of an empty ID.
func EmptyID() *Problem { return UsageProblem("the id is empty; is a variable not set?") }
