<?php
// GETs a URL and prints the answer: fetch.php streams|curl URL. Streams read no proxy variable.
[, $library, $url] = $argv;
if ($library === 'curl') {
    $curl = curl_init($url);
    curl_setopt($curl, CURLOPT_RETURNTRANSFER, true);
    $answer = curl_exec($curl);
    if ($answer === false) fwrite(STDERR, curl_error($curl));
} else {
    $proxy = str_replace('http://', 'tcp://', getenv('https_proxy'));
    $options = parse_url($url, PHP_URL_HOST) === 'localhost' ? [] : ['http' => ['proxy' => $proxy]];
    $answer = file_get_contents($url, false, stream_context_create($options));
}
if ($answer === false) exit(1);
echo $answer;
