package hook

import "fmt"

// programOf returns the program of a process, also if its file was replaced.
func programOf(pid int) string { return fmt.Sprintf("/proc/%d/exe", pid) }
