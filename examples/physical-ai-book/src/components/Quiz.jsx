import React, {useState} from 'react';

/**
 * One multiple-choice question. `answer` is the index of the right option,
 * counted from zero.
 */
export default function Quiz({question, options, answer}) {
  const [chosen, setChosen] = useState(null);
  const right = chosen === answer;
  return (
    <div className="quiz" role="group" aria-label={question}>
      <p className="quiz__question">{question}</p>
      <ul className="quiz__options">
        {options.map((option, index) => (
          <li key={option}>
            <button
              type="button"
              className={index === chosen ? 'quiz__option quiz__option--chosen' : 'quiz__option'}
              aria-pressed={index === chosen}
              onClick={() => setChosen(index)}>
              {option}
            </button>
          </li>
        ))}
      </ul>
      <p className="quiz__result" aria-live="polite">
        {chosen === null ? '' : right ? 'Right.' : 'Not quite. Read the section above again.'}
      </p>
    </div>
  );
}
