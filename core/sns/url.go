package sns

import (
	"net/url"
	"strings"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/endpoint"
	"github.com/eventgateway/gateway/core/once"
)

// domains are the domains of the hosts in Amazon's partitions. The hosts of the secret
// regions are only reachable from inside.
var domains = map[string]string{
	"aws":        "amazonaws.com",
	"aws-us-gov": "amazonaws.com",
	"aws-cn":     "amazonaws.com.cn",
	"aws-eusc":   "amazonaws.eu",
}

// topicARN captures the partition and the region. No region has a digit before its number.
// If the pattern permitted [a-z0-9-] everywhere, s3-us-west-2 would be a region, and its
// host a bucket that anyone could own.
var topicARN = once.Regexp(`^arn:(aws[a-z-]*):sns:([a-z]{2,4}(?:-[a-z]{1,16}){1,3}-[0-9]{1,2}):[0-9]{12}:[A-Za-z0-9_-]{1,256}(?:\.fifo)?$`)

// IsTopic reports whether a text has the form of a topic's ARN in a region with public
// addresses, such as arn:aws:sns:eu-west-1:123456789012:orders. Messages of other topics
// never verify.
func IsTopic(arn string) bool {
	_, ok := host(arn)
	return ok
}

// hostOf returns the one host whose certificates are valid for a topic.
func hostOf(topic string) (string, error) {
	host, ok := host(topic)
	if !ok {
		return "", forged("TopicArn %.300q is not that of a topic", topic)
	}
	return host, nil
}

func host(topic string) (string, bool) {
	m := topicARN().FindStringSubmatch(topic)
	if m == nil || domains[m[1]] == "" {
		return "", false
	}
	return "sns." + m[2] + "." + domains[m[1]], true
}

// isCertificate reports whether the address is one of a signing certificate at a host. It
// compares texts: without a parser, two parsers cannot read the address in different ways.
func isCertificate(address, host string) bool {
	name, ok := strings.CutPrefix(address, "https://"+host+"/SimpleNotificationService-")
	name, pem := strings.CutSuffix(name, ".pem")
	return ok && pem && len(name) == 32 && strings.Trim(name, "0123456789abcdef") == ""
}

// ownConfirmation returns the address that confirms the subscription of a verified
// envelope, at the topic's own host. It only compares the envelope's address with that one:
// a different address means that the message has an unknown meaning.
func ownConfirmation(e envelope) (string, error) {
	host, err := hostOf(e["TopicArn"])
	if err != nil {
		return "", err
	}
	query, ok := strings.CutPrefix(e["SubscribeURL"], "https://"+host+"/?")
	given, err := url.ParseQuery(query)
	want := url.Values{"Action": {"ConfirmSubscription"}, "TopicArn": {e["TopicArn"]}, "Token": {e["Token"]}}
	if !ok || err != nil || given.Encode() != want.Encode() {
		return "", refuse(core.Invalid, "Invalid SubscribeURL", "it does not confirm this subscription at %s", host)
	}
	return "https://" + host + "/?" + want.Encode(), nil
}

// givenConfirmation returns the envelope's own address, if its form permits a call.
func givenConfirmation(address string, allowHTTP bool) (string, error) {
	u, err := endpoint.ParseURL(address)
	if err != nil {
		return "", refuse(core.Invalid, "Invalid SubscribeURL", "it %w", err)
	}
	if u.Scheme != "https" && !allowHTTP {
		return "", refuse(core.Invalid, "Invalid SubscribeURL", "it is not https (server.allow_private_urls is false)")
	}
	return address, nil
}
