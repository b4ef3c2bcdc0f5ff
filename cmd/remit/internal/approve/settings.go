package approve

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/remit-dev/remit/cmd/remit/internal/approval"
	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
)

// ApprovalCommand returns remit approval.
func ApprovalCommand(a *cli.App) *cobra.Command {
	var p state.Workspace
	var asJSON bool
	cmd := &cobra.Command{
		Use: "approval", Short: "Show or change from where approvals are accepted",
		Long: "Shows how remit approve checks that a person approves. By default, it needs a terminal, and refuses to run below the\n" +
			"process that asked or below the processes that started that one. The subcommands change these settings. They are in\n" +
			"the state folder, where calls cannot reach them. docs/explanation/threat-model.md says which attacks this stops.",
		Args: cli.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := p.Find(a); err != nil {
				return err
			}
			s, err := approval.ReadSettings(p.StateDir)
			if err != nil {
				return err
			}
			if err := writeSettings(a, s, asJSON); err != nil || asJSON {
				return err
			}
			_, err = fmt.Fprintln(a.Out, "kept in "+cli.Printable(filepath.Join(p.StateDir, approval.SettingsFile)))
			return err
		},
	}
	state.AddFlags(cmd, &p)
	cmd.Flags().BoolVar(&asJSON, "json", false, "write one JSON object")
	cmd.AddCommand(
		settingCommand(a, "allow-unattended", "Accept approvals without a terminal, and from below the process that asked", func(s *approval.Settings) error {
			s.Allow(a)
			return nil
		}),
		settingCommand(a, "refuse-unattended", "Accept approvals only from a terminal (the default)", func(s *approval.Settings) error {
			s.Refuse()
			return nil
		}),
		settingCommand(a, "set-passphrase", "Require a passphrase for each approval", func(s *approval.Settings) error { return approval.ChoosePassphrase(a, s) }),
		settingCommand(a, "remove-passphrase", "Require no passphrase for approvals", func(s *approval.Settings) error {
			s.Passphrase = nil
			return nil
		}),
	)
	return cmd
}

// settingCommand returns a command that changes the settings. It requires what
// an approval requires, unless it only restricts.
func settingCommand(a *cli.App, use, short string, change func(*approval.Settings) error) *cobra.Command {
	var p state.Workspace
	var asJSON bool
	cmd := &cobra.Command{
		Use: use, Short: short, Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := p.Find(a); err != nil {
				return err
			}
			s, err := approval.ReadSettings(p.StateDir)
			if err != nil {
				return err
			}
			if use != "refuse-unattended" {
				asked, err := approval.PendingCalls(cmd.Context(), a, &p)
				if err != nil {
					return err
				}
				if err := approval.CheckApprover(a, &p, s, asked...); err != nil {
					return err
				}
			}
			if err := change(&s); err != nil {
				return err
			}
			if err := approval.WriteSettings(p.StateDir, s); err != nil {
				return fmt.Errorf("write %s: %w", approval.SettingsFile, err)
			}
			if err := announce(cmd.Context(), &p); err != nil {
				return err
			}
			return writeSettings(a, s, asJSON)
		},
	}
	state.AddFlags(cmd, &p)
	cmd.Flags().BoolVar(&asJSON, "json", false, "write one JSON object")
	return cmd
}

// announce tells the other nodes of a shared journal the new settings.
func announce(ctx context.Context, p *state.Workspace) (err error) {
	if !p.IsShared() {
		return nil
	}
	j, err := p.Open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	return approval.Announce(ctx, p, j)
}

// settingRecord is the --json output of the settings commands.
type settingRecord struct {
	Unattended bool `json:"unattended"`
	Passphrase bool `json:"passphrase"` // each approval needs the passphrase
}

func writeSettings(a *cli.App, s approval.Settings, asJSON bool) error {
	if asJSON {
		a.WriteJSON(settingRecord{s.Unattended, s.Passphrase != nil})
		return nil
	}
	_, err := fmt.Fprintln(a.Out, s.Describe())
	return err
}
