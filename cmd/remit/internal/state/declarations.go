package state

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/hooks"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/define"
	"github.com/remit-dev/remit/tool/settings"
)

// Declarations holds the flags about tools: definition files that replace
// built-in tools, and settings.
type Declarations struct {
	definitions    []string
	locked, user   string
	preset         string
	SettingsStatus []settings.Status
}

// AddDefinitionsFlag adds the flag for definition files to a command.
func AddDefinitionsFlag(cmd *cobra.Command, folders *[]string) {
	cmd.Flags().StringArrayVar(folders, "definitions", nil, "`DIR` with definition files, which replace the built-in tools that they describe: docs/guides/define.md")
}

// AddDeclarationFlags adds the flags of definition files and settings.
func AddDeclarationFlags(cmd *cobra.Command, d *Declarations) {
	flags := cmd.Flags()
	AddDefinitionsFlag(cmd, &d.definitions)
	flags.StringVar(&d.user, "settings", "", "`FILE` with the user's settings of tools: docs/guides/settings.md")
	flags.StringVar(&d.preset, "preset-settings", "", "`FILE` with the organisation's settings, for what the user does not set")
	flags.StringVar(&d.locked, "admin-settings", "", "`FILE` with the settings that the administrator locked")
}

// Declare sets the tools of the command. Its files decide what calls can do, so
// they must lie outside every folder that calls can change. Secrets holds the
// names of the known secrets; nil: unknown.
func Declare(ctx context.Context, a *cli.App, d *Declarations, folders, secrets []string) error {
	all, err := DefinedTools(a, d.definitions, folders)
	if err != nil {
		return err
	}
	from := settings.Sources{Secrets: secrets}
	if from.Locked, err = readSettings(settings.Locked, d.locked, folders); err != nil {
		return err
	}
	if from.User, err = readSettings(settings.User, d.user, folders); err != nil {
		return err
	}
	if from.Preset, err = readSettings(settings.Preset, d.preset, folders); err != nil {
		return err
	}
	tools, status, err := settings.Resolve(ctx, from, all.All()...)
	if err != nil {
		return &cli.Problem{Code: cli.ExitUsage, What: "the settings cannot be used", Why: err.Error(), Fix: "docs/guides/settings.md says what is in them"}
	}
	a.DeclaredTools, d.SettingsStatus = tools, status
	return nil
}

// DefinedTools returns the built-in tools, with those of definition files in place
// of the ones that they describe. The definitions must lie outside every folder
// that calls can change.
func DefinedTools(a *cli.App, definitions, folders []string) (all tool.Registry, err error) {
	tools := a.BuiltinTools()
	for _, dir := range definitions {
		if dir == "" {
			return all, cli.UsageProblem("--definitions names no folder; is a variable not set?")
		}
		inside := Workspace{StateDir: dir}
		if inside.CheckStateOutside(folders) != nil {
			return all, &cli.Problem{
				Code: cli.ExitUsage, What: fmt.Sprintf("the definitions %q lie inside a root", dir),
				Why: "calls could change what tools may do", Fix: "name a folder elsewhere",
			}
		}
		made, err := LoadDefinitions(a, os.DirFS(dir))
		if err != nil {
			return all, &cli.Problem{
				Code: cli.ExitUsage, What: fmt.Sprintf("the definitions in %q cannot be used", dir), Why: "\n" + err.Error(),
				Fix: "docs/guides/define.md says what is in them",
			}
		}
		for _, t := range made {
			described := strings.TrimPrefix(t.Spec().Provenance.Implementation, "builtin/")
			tools = slices.DeleteFunc(tools, func(b tool.Tool) bool { return b.Spec().Provenance.Implementation == "" && b.Name() == described })
		}
		tools = append(tools, made...)
	}
	if all, err = tool.NewRegistry(tools...); err != nil {
		return all, cli.UsageProblem("--definitions: " + err.Error())
	}
	return all, nil
}

// LoadDefinitions returns the tools of definition files, whose implementations are the
// built-in tools.
func LoadDefinitions(a *cli.App, files fs.FS) ([]tool.Tool, error) {
	implementations := map[string]define.Implementation{}
	for _, t := range a.BuiltinTools() {
		implementations["builtin/"+t.Name()] = define.FromTool(t)
	}
	return define.Load(files, implementations, define.AllowUnused())
}

func readSettings(layer settings.Layer, name string, folders []string) (settings.File, error) {
	if name == "" {
		return settings.File{}, nil
	}
	if err := outside(folders, name, "the file of settings", "calls could change what tools are configured with"); err != nil {
		return settings.File{}, err
	}
	text, err := os.ReadFile(name)
	if err != nil {
		err = errors.New(cli.PlainError(err))
	}
	var f settings.File
	if err == nil {
		f, err = settings.Read(layer, name, text)
	}
	if err != nil {
		return f, &cli.Problem{
			Code: cli.ExitUsage, What: fmt.Sprintf("the settings %q cannot be used", name), Why: err.Error(),
			Fix: "docs/guides/settings.md says what is in them",
		}
	}
	return f, nil
}

// flags returns the flags with which another command has the same tools.
func (d *Declarations) flags() (flags []string) {
	for _, dir := range d.definitions {
		flags = append(flags, "--definitions", dir)
	}
	if d.user != "" {
		flags = append(flags, "--settings", d.user)
	}
	if d.preset != "" {
		flags = append(flags, "--preset-settings", d.preset)
	}
	if d.locked != "" {
		flags = append(flags, "--admin-settings", d.locked)
	}
	return flags
}

// ServedTools lists the tools that the runtime offers.
func ServedTools(a *cli.App) []tool.Tool {
	tools := Tools(a)
	if a.LeftOut != nil {
		tools = slices.DeleteFunc(tools, a.LeftOut)
	}
	return tools
}

// Tools lists the tools of the command, as the flags declare them.
func Tools(a *cli.App) []tool.Tool {
	if a.DeclaredTools != nil {
		return slices.Clone(a.DeclaredTools)
	}
	return a.BuiltinTools()
}

// RecordedTools lists the tools whose calls a journal can hold: those of the
// command, and those that uses of a coding agent's tools become.
func RecordedTools(a *cli.App) []tool.Tool { return append(Tools(a), hooks.Tools()...) }
