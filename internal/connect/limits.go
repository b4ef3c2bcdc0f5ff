package connect

// Limits says what remit cannot know or do about coding agents on a system, as
// in runtime.GOOS; nil: nothing is weaker there.
func Limits(system string) []string {
	if system != "darwin" && system != "windows" {
		return nil
	}
	all := []string{
		"this system has no sandbox: commands run as you. The policy decides before, remit compares the folder afterwards, and it does not see what a command does elsewhere",
		"which process started a command is unknown here: while an agent works, remit answers requests and reverts only in a terminal, and an agent cannot revert by itself",
		"the end of an agent is unknown here: if it sends no event for two hours, its prompt ends",
	}
	if system == "windows" {
		return append(all, "attributes, access control lists, owners and most permission bits of files are not restored")
	}
	return append(all, "extended attributes and access control lists of files are not restored")
}
