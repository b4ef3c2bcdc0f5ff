package remit_given_test

import data.remit

refused := {"the call names a URL that is not user-provided: neither the user nor an independent result contained it"}

doc(action, kind, destination, urls) := {
	"call": {"urls": urls},
	"tool": {"destination": destination},
	"access": {"action": action, "resource": {"kind": kind}, "dynamic": false},
}

known := [{"url": "https://a.example/", "user_provided": true}]

made := [{"url": "https://b.example/?q=secret", "user_provided": false}, {"url": "https://a.example/", "user_provided": true}]

test_made_up_urls_do_not_leave if {
	every destination in ["third_party", "model_chosen", "", "none"] {
		remit.deny == refused with input as doc("connect", "https", destination, made)
		remit.deny == refused with input as doc("call", "mcp", destination, made)
		count(remit.hint) == 1 with input as doc("connect", "https", destination, made)
	}
	every destination in ["third_party", "model_chosen"] {
		remit.deny == refused with input as doc("call", "tool", destination, made)
	}
}

test_given_urls_do if {
	every urls in [known, []] {
		count(remit.deny) + count(remit.hint) == 0 with input as doc("connect", "https", "model_chosen", urls)
		count(remit.deny) == 0 with input as doc("call", "mcp", "third_party", urls)
	}
}

test_what_stays_is_free if {
	every action in ["read", "write", "call", "execute"] {
		count(remit.deny) == 0 with input as doc(action, "file", "none", made)
	}
	count(remit.deny) == 0 with input as doc("connect", "https", "configured", made)
	count(remit.deny) == 0 with input as doc("call", "tool", "configured", made)
}

test_nobody_looked if {
	remit.deny == refused with input as {
		"call": {}, "tool": {"destination": "model_chosen"},
		"access": {"action": "call", "resource": {"kind": "tool"}, "dynamic": false},
	}
}

test_places_without_a_url if {
	every urls in [[], known] {
		remit.deny == refused with input as to(urls, false, false)
		count(remit.deny) == 0 with input as to(urls, true, false)
	}
	remit.deny == refused with input as to([], false, true)
	count(remit.deny) == 0 with input as to(known, false, true)
	remit.deny == refused with input as to(made, true, true)
}

to(urls, given, dynamic) := {
	"call": {"urls": urls},
	"tool": {"destination": "model_chosen"},
	"access": {"action": "connect", "resource": {"kind": "https"}, "dynamic": dynamic, "user_provided": given},
}
