package script

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/startup"
)

// restCommand returns a function that returns the command to run a script from a
// line on, with the flags of this run.
func restCommand(f *startup.Flags, cmd *cobra.Command, script string) func(n int) string {
	return func(n int) string {
		if script == "-" {
			return ""
		}
		words := []string{fmt.Sprintf("tail -n +%d", n)}
		if strings.HasPrefix(script, "-") {
			words = append(words, "--")
		}
		words = append(words, cli.Quote(script), "|", "remit", "run")
		for _, w := range append(flagsOf(cmd, "database"), f.DatabaseFlags()...) {
			words = append(words, cli.Quote(w))
		}
		return strings.Join(append(words, "-"), " ")
	}
}

// flagsOf returns the flags of a command as words, except one.
func flagsOf(cmd *cobra.Command, but string) (words []string) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		switch list, many := f.Value.(pflag.SliceValue); {
		case f.Name == but:
		case many:
			for _, v := range list.GetSlice() {
				words = append(words, "--"+f.Name, v)
			}
		case f.Value.Type() == "bool":
			words = append(words, "--"+f.Name+"="+f.Value.String())
		default:
			words = append(words, "--"+f.Name, f.Value.String())
		}
	})
	return words
}
