package guides_test

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite the output in the console blocks of transcripts")

// transcript is a page whose blocks run in order, in one folder. A console
// block contains commands and their output. A sh block contains commands. Every
// other block is a file; the line before it ends with the file's name in code.
type transcript struct {
	*place
	cwd  string
	code int               // exit code of the last command
	real map[string]string // by each ID of the page
	page map[string]string // the reverse of real
}

// idOrTime matches the parts of a command's output that differ from run to run.
var idOrTime = regexp.MustCompile(`\b[cgst]_[0-9a-z]{12}\b|#[0-9a-f]{12}\.\d+|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?: [+-]\d\d:\d\d)?|sha256:[0-9a-f]{64}|/remit/\w+-[0-9a-f]+|/connect/[0-9a-f]{16}|\(process \d+\)|\(\d+s\)`)

// approvedBy matches the name of the user who runs the tests.
var approvedBy = regexp.MustCompile(`(?m)^approved by \S+$`)

// TestTranscripts runs the pages that show the output of commands.
func TestTranscripts(t *testing.T) {
	shell(t)
	for doc, setup := range transcripts {
		t.Run(doc, func(t *testing.T) {
			if doc == recipesPage {
				programs(t)
			}
			p := newPlace(t)
			if setup != nil {
				setup(p)
			}
			tr := &transcript{place: p, cwd: p.dir, real: map[string]string{}, page: map[string]string{}}
			for _, b := range read(t) {
				if b.doc != doc || b.notRun != "" {
					continue
				}
				noteRun(b)
				switch b.lang {
				case "console":
					tr.console(b)
				case "sh":
					_, code := tr.run(b.text)
					require.Zero(t, code, b)
				default:
					name := fileName.FindStringSubmatch(b.before)
					require.NotNil(t, name, "%s: the line before names no file: %q", b, b.before)
					p.write(name[1], tr.onMachine(b.text))
				}
			}
		})
	}
}

// transcripts are the pages, each with the function that prepares its folder.
var transcripts = map[string]func(*place){
	"tutorial/first-revert.md": nil,
	"guides/undo.md":           nil,
	"guides/recover.md":        killedRun,
	"guides/approval.md":       unattended,

	"tutorial/first-gateway.md": substitutePrograms,
	"guides/coding-agents.md":   codingAgent,

	recipesPage: prepareRecipes,
}

// killedRun leaves a transaction whose process was killed after its first call.
func killedRun(p *place) {
	p.write("shop/site.ini", "name = Shop\n")
	cmd := exec.Command(filepath.Join(binary(p.t), "remit"), "run", "-")
	cmd.Dir, cmd.Env = filepath.Join(p.dir, "shop"), p.env
	in, err := cmd.StdinPipe()
	require.NoError(p.t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(p.t, err)
	require.NoError(p.t, cmd.Start())
	_, err = io.WriteString(in, `{"tool":"file_edit","args":{"path":"site.ini","old":"Shop","new":"My Shop"}}`+"\n")
	require.NoError(p.t, err)
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(p.t, err)
	require.Contains(p.t, line, "site.ini")
	require.NoError(p.t, cmd.Process.Kill())
	require.Error(p.t, cmd.Wait(), "it was killed")
}

var fileName = regexp.MustCompile("`([^`]+)`:$")

// console runs the commands of a block and compares their output.
func (tr *transcript) console(b block) {
	t := tr.t
	lines := strings.Split(strings.TrimSuffix(b.text, "\n"), "\n")
	var now []string
	for len(lines) > 0 {
		command, isCommand := strings.CutPrefix(lines[0], "$ ")
		require.True(t, isCommand, "%s: not a command: %q", b, lines[0])
		end := slices.IndexFunc(lines[1:], func(l string) bool { return strings.HasPrefix(l, "$ ") }) + 1
		if end == 0 {
			end = len(lines)
		}
		want := strings.Join(lines[1:end], "\n")
		require.True(t, tr.code == 0 || command == "echo $?", "%s: show the exit code before %q", b, command)
		out, code := tr.run(tr.onMachine(idOrTime.ReplaceAllStringFunc(command, tr.realOf)))
		out = strings.TrimRight(tr.shown(want, out), "\n")
		tr.code = code
		now = append(now, lines[0])
		if out != "" {
			now = append(now, out)
		}
		if !*update {
			require.Equal(t, want, out, "%s: $ %s", b, command)
		}
		lines = lines[end:]
	}
	if *update {
		name := filepath.Join(root, "docs", b.doc)
		data, err := os.ReadFile(name)
		require.NoError(t, err)
		text := strings.Replace(string(data), "```console\n"+b.text+"```", "```console\n"+strings.Join(now, "\n")+"\n```", 1)
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	}
}

func (tr *transcript) realOf(id string) string {
	if is, known := tr.real[id]; known {
		return is
	}
	return id
}

// onMachine returns a text of the page with the names of this machine.
func (tr *transcript) onMachine(text string) string {
	for page, is := range tr.names {
		text = strings.ReplaceAll(text, page, is)
	}
	return strings.ReplaceAll(text, "/home/me", tr.home)
}

// shown returns output as the page shows it, with the page's names of folders,
// IDs and times. A new ID maps to the one at its place on the page.
func (tr *transcript) shown(want, out string) string {
	for page, is := range tr.names {
		out = strings.ReplaceAll(out, is, page)
	}
	out = strings.ReplaceAll(strings.ReplaceAll(out, tr.dir, "/home/me/work"), tr.home, "/home/me")
	out = approvedBy.ReplaceAllString(out, "approved by me")
	theirs := idOrTime.FindAllString(want, -1)
	for i, is := range idOrTime.FindAllString(out, -1) {
		if _, known := tr.page[is]; known {
			continue
		}
		as := is
		if i < len(theirs) && tr.real[theirs[i]] == "" && theirs[i][:1] == is[:1] {
			as = theirs[i]
		}
		tr.real[as], tr.page[is] = is, as
	}
	return idOrTime.ReplaceAllStringFunc(out, func(is string) string { return tr.page[is] })
}

// run runs commands in the current folder of the transcript, which they can
// change.
func (tr *transcript) run(commands string) (out string, code int) {
	where := filepath.Join(tr.home, "where")
	script := fmt.Sprintf("(exit %d)\n%s\ncode=$?; pwd >%s; exit $code\n", tr.code, commands, where)
	cmd := exec.Command("sh", "-c", script)
	cmd.Dir, cmd.Env = tr.cwd, tr.env
	data, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		code = exit.ExitCode()
	} else {
		require.NoError(tr.t, err)
	}
	cwd, err := os.ReadFile(where)
	require.NoError(tr.t, err)
	tr.cwd = strings.TrimSpace(string(cwd))
	return string(data), code
}
