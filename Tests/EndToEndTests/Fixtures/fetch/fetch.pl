# GETs a URL and prints the answer: fetch.pl tiny|lwp URL
use strict;
my ($library, $url) = @ARGV;
if ($library eq 'tiny') {
    require HTTP::Tiny;
    my $answer = HTTP::Tiny->new(verify_SSL => 1)->get($url);
    die $answer->{content} unless $answer->{success};
    print $answer->{content};
} else {
    require LWP::UserAgent;
    my $answer = LWP::UserAgent->new(env_proxy => 1)->get($url);
    die $answer->status_line unless $answer->is_success;
    print $answer->decoded_content;
}
