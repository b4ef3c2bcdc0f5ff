package policy

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/policyfile"
	"github.com/remit-dev/remit/policies"
)

func newCommand(a *cli.App) *cobra.Command {
	var from string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "new --from PACK [FOLDER]", Short: "Copy a pack, to start a policy from it",
		Long: "Copies the files of a pack, with its tests, into a folder (default: policy). It never replaces a file. The packs are\n" +
			policyfile.PackList() + ".\n\n" +
			"A copy is a separate policy: remit run --policy FOLDER uses it, and later versions of remit do not change it. To\n" +
			"extend a pack instead, name both: remit run --policy builtin:workspace --policy my.rego. Then all rules count, and a\n" +
			"denial by either wins.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if from == "" {
				e := cli.UsageProblem("--from is missing: name a pack")
				e.Fix = "the packs are " + policyfile.PackList()
				return e
			}
			return copyPack(a, from, append(args, "policy")[0], asJSON)
		},
	}
	cmd.Flags().StringVar(&from, "from", "", "`PACK` to copy, such as workspace")
	cmd.Flags().BoolVar(&asJSON, "json", false, "write one JSON object")
	return cmd
}

// copyOutput is the JSON form of a copy of a pack.
type copyOutput struct {
	Pack   string   `json:"pack"`
	Folder string   `json:"folder"`
	Files  []string `json:"files"`
}

// copyPack writes all files of a pack, or none.
func copyPack(a *cli.App, name, dir string, asJSON bool) error {
	pack, err := policyfile.Pack(trimPack(name))
	if err != nil {
		return err
	}
	files, err := packFiles(pack)
	if err != nil {
		return err
	}
	for file := range files {
		if _, err := os.Lstat(filepath.Join(dir, file)); !errors.Is(err, fs.ErrNotExist) {
			return &cli.Problem{
				Code: cli.ExitUsage, What: fmt.Sprintf("%s: is there already", filepath.Join(dir, file)), Why: "nothing was written",
				Fix: "name another folder: remit policy new --from " + trimPack(name) + " FOLDER",
			}
		}
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return folderProblem(dir, err)
	}
	for file, text := range files {
		if err := writeFresh(filepath.Join(dir, file), text); err != nil {
			return folderProblem(dir, err)
		}
	}
	if asJSON {
		a.WriteJSON(copyOutput{Pack: trimPack(name), Folder: dir, Files: slices.Sorted(maps.Keys(files))})
		return nil
	}
	_, _ = fmt.Fprintf(a.Out, "wrote %s to %s\nchange it, then: remit policy check %s\nuse it: remit run --policy %s …\n",
		cli.Count(len(files), "file"), cli.Printable(dir), cli.Printable(dir), cli.Printable(dir))
	return nil
}

// trimPack removes builtin: from the name of a pack.
func trimPack(name string) string { return strings.TrimPrefix(name, policies.Prefix) }

// packFiles returns the files of a pack by name, without folders.
func packFiles(pack fs.FS) (map[string][]byte, error) {
	files := map[string][]byte{}
	err := fs.WalkDir(pack, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files[path.Base(name)], err = fs.ReadFile(pack, name)
		return err
	})
	return files, err
}

// writeFresh creates a file. It returns an error if the file exists.
func writeFresh(name string, text []byte) error {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	return errors.Join(err, file.Close())
}

func folderProblem(dir string, err error) error {
	return &cli.Problem{Code: cli.ExitUsage, What: fmt.Sprintf("the folder %q cannot be written", dir), Why: cli.PlainError(err), Fix: "name another folder"}
}
