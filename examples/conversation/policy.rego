# Added to the workspace policy: each deletion needs approval, although it can be reverted.
package remit

ask contains "somebody looks at what is deleted" if input.access.action == "delete"
