// Package webhook calls HTTP addresses from processors: the tag "http", whose task bodies are requests ([Client.HTTP]),
// and any processor that passes its task on by a call ([Client.Deliver]).
//
// An address to call often comes from an untrusted caller. So a [Guard] decides when the connection is dialled, on the
// address that the name resolved to. It lets only public addresses through, unless the operator allowed more. Proxies
// of the environment are not used, redirects are not followed, and neither addresses nor answers appear in errors.
//
// One receiver that is slow, limited or dead must not hold the slots that others need. So each host has its own limits
// and its own circuit breaker. A task that they refuse is snoozed, which spends no attempt and holds no slot. While a
// host does not answer, only the calls that try whether it is back spend attempts, so its tasks outlast a long outage.
//
// Calls are signed after the Standard Webhooks specification (https://www.standardwebhooks.com), and every call says in
// headers which task it is for:
//
//	Webhook-Id           the task's id, the same in every attempt: a receiver detects repetitions by it
//	Webhook-Timestamp    when this attempt was made, in Unix seconds; with the signature only
//	Webhook-Signature    "v1,…" for each secret, separated by spaces; with the signature only
//	Delaytask-Id         the task's id
//	Delaytask-Tag        its tag
//	Delaytask-Attempt    1 for the first
//	Delaytask-Crashes    processes that were lost while they ran it, where there are any
//	Delaytask-Token      the lease token, "id.version"
//	Delaytask-Expected   the task's first due time, RFC 3339 in UTC
//	Delaytask-Schedule   the schedule that it is a run of; with the next one for such tasks only
//	Delaytask-Tick       the tick of the schedule, RFC 3339 in UTC
//	Traceparent, Tracestate   as the task's own headers carry them
package webhook
