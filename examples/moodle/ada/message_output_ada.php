<?php
// Hands notices of Moodle to Ada, which brings them to Telegram, VK, MAX, SMS and e-mail.

defined('MOODLE_INTERNAL') || die();

require_once($CFG->dirroot . '/message/output/lib.php');
require_once($CFG->libdir . '/filelib.php');

/**
 * The output "Ada". A user is known to Ada by its ID number: SOURCE:IDNUMBER is an external id of a person there.
 */
class message_output_ada extends message_output {
    /** Seconds for a call: Moodle waits for it. */
    const TIME_LIMIT = 10;

    /** The longest text that Ada takes. */
    const MOST_LETTERS = 4000;

    /**
     * Hand a message to Ada. The same message handed in again is sent once.
     *
     * @param \core\message\message|stdClass $eventdata the message
     * @return bool whether Ada has taken it, or there is nobody to send it to
     */
    public function send_message($eventdata) {
        $user = $eventdata->userto;
        if (!$this->is_system_configured() || !empty($user->deleted) || !empty($user->suspended)) {
            return true;
        }
        if (!$this->is_user_configured($user)) {
            return true;
        }
        $key = implode('-', ['moodle', get_site_identifier(), $eventdata->savedmessageid ?? uniqid(), $user->id]);
        [$status, $answer] = $this->post('/v1/deliveries', $this->delivery($eventdata, $user), sha1($key));
        if ($status < 200 || $status >= 300) {
            debugging("Ada has refused a message to user {$user->id}: {$status} {$answer}", DEBUG_DEVELOPER);
            return false;
        }
        return true;
    }

    /**
     * Return the body of the call.
     */
    private function delivery($eventdata, $user): array {
        $parts = [$eventdata->subject ?? '', $eventdata->fullmessage ?: ($eventdata->smallmessage ?? '')];
        $parts[] = (string) ($eventdata->contexturl ?? '');
        $text = trim(implode("\n\n", array_filter(array_map('trim', $parts))));
        return [
            'sender' => ['id' => get_config('message_ada', 'sender') ?: 'moodle'],
            'text' => core_text::substr($text, 0, self::MOST_LETTERS),
            'recipients' => [['id' => get_config('message_ada', 'source') . ':' . $user->idnumber]],
        ];
    }

    /**
     * Call Ada; return the status, 0 if it did not answer, and the answer.
     */
    private function post(string $path, array $body, string $key): array {
        $curl = new curl();
        $curl->setHeader([
            'Authorization: Bearer ' . get_config('message_ada', 'key'),
            'Content-Type: application/json',
            'Idempotency-Key: ' . $key,
        ]);
        $url = rtrim(get_config('message_ada', 'url'), '/') . $path;
        $answer = $curl->post($url, json_encode($body), ['CURLOPT_TIMEOUT' => self::TIME_LIMIT]);
        return [(int) ($curl->get_info()['http_code'] ?? 0), (string) $answer];
    }

    /** Users have nothing to set here: Ada knows their contacts, and its page has what they want to receive. */
    public function config_form($preferences) {
        return '';
    }

    /** There is no form. */
    public function process_form($form, &$preferences) {
        return true;
    }

    /** There is nothing to load. */
    public function load_data(&$preferences, $userid) {
        return true;
    }

    /** Return whether the address, the key and the source are set. */
    public function is_system_configured() {
        foreach (['url', 'key', 'source'] as $name) {
            if (!get_config('message_ada', $name)) {
                return false;
            }
        }
        return true;
    }

    /** Return whether the user can be named to Ada. */
    public function is_user_configured($user = null) {
        global $USER;

        $user = $user ?? $USER;
        return !empty($user->idnumber);
    }

    /** Users choose it themselves, unless the administrator decides. */
    public function get_default_messaging_settings() {
        return MESSAGE_PERMITTED;
    }
}
